import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { addToFile, readServers, removeFromFile } from '../src/registry/configured-servers.ts'
import { MCP_CLIENTS, type McpClientConfig } from '../src/registry/settings.ts'

const problemsOf = async (entries: readonly McpClientConfig[], file = '/nowhere/mcp.yaml') =>
  (await readServers(entries, file)).problems.map(({ message, where, hint }) => `${message} (${where}) ${hint}`)

describe('the configuration of tool servers', () => {
  let folder: string
  let file: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-mcp-'))
    file = join(folder, 'mcp.yaml')
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  it('takes every documented key', () => {
    const entry = {
      name: 'docs',
      url: 'https://docs.example/mcp',
      tools: ['search'],
      timeout: 12.5,
      retry_attempts: 3,
      oauth: { client_id: 'a', client_secret: 'b', token_url: 'https://auth.example/token', scope: 'read' },
      sandbox: true,
      sandbox_config: { timeout: 10, memory_limit: '512M', network_access: true },
      allow: ['read_*'],
      deny: ['*_all'],
      effects: ['read'],
      enabled: false,
    }
    expect(MCP_CLIENTS.check([entry])).to.deep.equal([])
    const program = {
      name: 'p',
      command: 'node',
      args: [''],
      env: { A: 'b' },
      sandbox: true,
      sandbox_config: { filesystem_readonly: false, allowed_paths: ['/tmp'] },
    }
    expect(MCP_CLIENTS.check([program])).to.deep.equal([])
  })

  for (const [why, entry, said] of [
    ['neither url nor command', {}, 'must have either url or command'],
    ['both', { url: 'http://a/', command: 'b' }, 'must have either url or command'],
    ['an address that is none', { url: 'localhost:8080' }, 'url must be a URL'],
    ['a password in the address', { url: 'https://me:secret@a/' }, 'url must not contain a user name or a password'],
    ['arguments of a remote server', { url: 'http://a/', args: ['x'] }, 'args is only for a command'],
    ['a key of a program', { command: 'x', api_key_env: 'K' }, 'api_key_env is only for a url'],
    ['two credentials', { url: 'http://a/', api_key_env: 'K', oauth: {} }, 'oauth cannot be combined with api_key_env'],
    [
      'two secrets',
      { url: 'http://a/', oauth: { client_secret: 'a', client_secret_env: 'B' } },
      'oauth.client_secret_env cannot be combined',
    ],
    [
      'a token address without a client',
      { url: 'http://a/', oauth: { token_url: 'http://b/' } },
      'oauth.token_url requires client_id',
    ],
    [
      'what cannot be fetched in the sandbox',
      { command: '/usr/bin/npx', args: ['x'], sandbox: true },
      'command is npx, which downloads',
    ],
    ['a sandbox that is not asked for', { command: 'x', sandbox_config: {} }, 'sandbox_config has no effect'],
    [
      'files of a remote server',
      { url: 'http://a/', sandbox: true, sandbox_config: { allowed_paths: ['/a'] } },
      'sandbox_config.allowed_paths applies to local files',
    ],
    [
      'files of a remote server that may be written',
      { url: 'http://a/', sandbox: true, sandbox_config: { filesystem_readonly: false } },
      'sandbox_config.filesystem_readonly applies to local files',
    ],
  ] as const)
    it(`refuses ${why}, and shows no secret`, async () => {
      const problems = await problemsOf([{ name: 'one', ...entry }])
      expect(problems).to.have.length(1)
      expect(problems[0]).to.include(`MCP server "one": `).and.include(said).and.include('(mcp.clients[0])')
      expect(problems[0]).to.not.include('secret@')
    })

  it('refuses a name that is there twice, in the configuration or in mcp.yaml', async () => {
    await writeFile(file, 'clients:\n  - name: two\n    command: x\n')
    const problems = await problemsOf(
      [
        { name: 'one', command: 'a' },
        { name: 'one', command: 'b' },
        { name: 'two', command: 'c' },
      ],
      file
    )
    expect(problems).to.have.length(2)
    expect(problems[0]).to.include('"one" is configured twice: mcp.clients[0]')
    expect(problems[1])
      .to.include('"two" is configured twice: mcp.clients[2]')
      .and.match(/mcp\.yaml:2\)/)
  })

  it('reports the problems of mcp.yaml with their lines', async () => {
    await writeFile(file, '# mine\nclients:\n  - name: a\n    url: nowhere\n  - name: b\n    command: x\n    sandbx: true\n')
    expect(await problemsOf([], file)).to.satisfy(
      (all: string[]) => all.length === 1 && /sandbx.*mcp\.yaml:7\).*sandbox/.test(all[0]!)
    )
    await writeFile(file, '# mine\nclients:\n  - name: a\n    url: nowhere\n')
    expect(await problemsOf([], file)).to.satisfy(
      (all: string[]) => all.length === 1 && /url must be.*mcp\.yaml:4\)/.test(all[0]!)
    )
    await writeFile(file, 'clients: [\n')
    expect((await problemsOf([], file))[0]).to.match(/mcp\.yaml:\d\)/)
  })

  it('identifies a server by its address or command, and gives a changed entry another fingerprint', async () => {
    const { servers } = await readServers(
      [
        { name: 'a', command: 'x', args: ['1'] },
        { name: 'b', command: 'x', args: ['1'], timeout: 3 },
      ],
      file
    )
    expect(servers[0]!.identity).to.equal(servers[1]!.identity)
    expect(servers[0]!.fingerprint).to.not.equal(servers[1]!.fingerprint)
  })

  describe('mcp.yaml', () => {
    it('is made for its owner alone, and keeps what a person wrote', async () => {
      await addToFile(file, [{ name: 'files', command: 'npx', args: ['-y', 'some-server', '/data: 1'] }])
      expect((await stat(file)).mode & 0o777).to.equal(0o600)
      const first = await readFile(file, 'utf8')
      await writeFile(file, `${first}  # mine, and last\n  - url: http://a/mcp # why\n    name: mine\n`)
      await addToFile(file, [{ name: 'more', url: 'https://b/mcp', timeout: 5 }])
      await removeFromFile(file, 'files', 'hint')
      const text = await readFile(file, 'utf8')
      expect(text).to.include('# mine, and last').and.include('http://a/mcp # why').and.include('svc mcp add')
      const { servers, problems } = await readServers([], file)
      expect(problems).to.deep.equal([])
      expect(servers.map(server => server.entry)).to.deep.equal([
        { url: 'http://a/mcp', name: 'mine' },
        { name: 'more', url: 'https://b/mcp', timeout: 5 },
      ])
      expect((await stat(file)).mode & 0o777).to.equal(0o600)
    })

    it('is not touched where it has faults, or the name is not in there', async () => {
      await writeFile(file, 'clients:\n  - name: a\n    comand: x\n')
      const failed = await addToFile(file, [{ name: 'b', command: 'x' }]).catch((error: { code: string }) => error.code)
      expect(failed).to.equal('MCP_CLIENT_INVALID')
      expect(await readFile(file, 'utf8')).to.equal('clients:\n  - name: a\n    comand: x\n')
      await writeFile(file, 'clients: []\n')
      expect(await removeFromFile(file, 'b', 'hint').catch((error: { code: string }) => error.code)).to.equal(
        'MCP_SERVER_UNKNOWN'
      )
    })
  })
})
