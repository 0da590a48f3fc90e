import { once } from 'node:events'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { makeCertificate, writeCertificate } from '@svc/testing'
import { expect } from 'chai'
import { nodeFinding } from '../src/commands/doctor/machine.ts'
import { sideBySide } from '../../../../test/support/side-by-side.ts'
import { makeWorkspace, type Workspace } from '../../../../cli/test/support/svc.ts'

interface Finding {
  name: string
  state: 'ok' | 'warn' | 'fail'
  message: string
  hint?: string
  where?: string
}

async function examine(workspace: Workspace, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  const { code, out } = await workspace.svc(['doctor', '--json', ...args], { env })
  const { ok, findings } = JSON.parse(out) as { ok: boolean; findings: Finding[] }
  const of = (name: string) => findings.filter(finding => finding.name === name)
  return { code, ok, findings, of, states: (name: string) => of(name).map(item => item.state) }
}

/** A folder with a `bwrap` that does this. */
async function withBwrap(workspace: Workspace, script: string) {
  const folder = join(workspace.folder, 'bin')
  await mkdir(folder)
  await writeFile(join(folder, 'bwrap'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return { PATH: `${folder}${delimiter}${process.env.PATH}` }
}

/** One that makes no namespace, and runs the program all the same. */
const WORKS = '[ "$1" = --version ] && { echo bubblewrap 0.8.0; exit; }\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"'

describe('svc doctor', () => {
  const it = sideBySide()
  it('warns of declared variables that are not set, for plugins that do not come with svc', async () => {
    await using workspace = await makeWorkspace()
    const svc = { api: 1, kind: 'tool', permissions: { env: ['NEEDED_KEY', { name: 'SPARE_KEY', optional: true }] } }
    await workspace.write(
      'needy/package.json',
      JSON.stringify({ name: 'needy', version: '1.0.0', type: 'module', exports: './index.js', svc })
    )
    await workspace.write(
      'needy/index.js',
      "import { definePlugin } from '@svc/core'\nexport default definePlugin({ setup() {} })\n"
    )
    await workspace.write('svc.config.json', JSON.stringify({ plugins: [{ use: './needy', isolation: 'in-process' }] }))
    const found = await examine(workspace)
    expect(found.of('variables').map(({ state, message }) => [state, message])).to.deep.equal([
      ['warn', 'needy: NEEDED_KEY is not set here'],
    ])
    expect((await examine(workspace, [], { NEEDED_KEY: 'x' })).of('variables')).to.deep.equal([])
  })

  it('finds nothing wrong where nothing is, and makes no more than the store', async () => {
    await using workspace = await makeWorkspace()
    const env = await withBwrap(workspace, WORKS)
    const { code, out } = await workspace.svc(['doctor', '--port', '0'], { env })
    expect(code).to.equal(0)
    for (const name of ['node', 'home', 'configuration', 'profiles', 'store', 'provider local', 'port', 'sandbox'])
      expect(out).to.match(new RegExp(`^ok {4}${name} +\\S`, 'm'))
    expect(out.replace(/\s+/g, ' ')).to.contain('bubblewrap 0.8.0 works; memory held by ')
    expect(out).to.match(/\nAll checks passed\.\n$/)
  })

  it('fails a Node that is too old, with what to do', async () => {
    for (const version of ['20.11.1', '23.11.0'])
      expect(nodeFinding(version)).to.deep.equal({
        name: 'node',
        state: 'fail',
        message: `${version} is too old: svc needs 24`,
        hint: 'Install Node 24, or start svc with npm, which brings its own',
      })
    for (const version of ['24.0.0', '100.1.0']) expect(nodeFinding(version)).to.include({ state: 'ok' })
  })

  it('looks the store through while a server has it open, and knows whose port it is', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    const body = JSON.stringify({ message: 'hello' })
    await fetch(`${server.url}/api/v1/chat`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    const { code, of } = await examine(workspace, ['--port', new URL(server.url).port])
    expect(code).to.equal(0)
    expect(of('store')[0]?.message).to.match(/svc\.db, whole, .*conversations in schema version \d+, .*\d+ records, .*GB free$/)
    expect(of('port')[0]?.message).to.contain(`this svc home (process ${server.process.pid})`)
    expect((await fetch(`${server.url}/health`)).status).to.equal(200)
  })

  it('reports every problem of the configuration with its workspace, and skipped checks', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'server:\n  prot: 1\nchat:\n  timeout_ms: soon\n')
    const { code, ok, of, states } = await examine(workspace)
    expect([code, ok, states('configuration')]).to.deep.equal([1, false, ['fail', 'fail']])
    expect(states('sandbox')).to.have.length(1)
    expect(of('configuration').map(item => item.where)).to.have.members(['svc.config.yaml:2', 'svc.config.yaml:4'])
    expect(of('configuration').every(item => item.hint)).to.equal(true)
    expect([states('profiles'), states('plugins'), states('store')]).to.deep.equal([['ok'], ['warn'], []])
  })

  it('reports a problem of the profiles separately', async () => {
    await using workspace = await makeWorkspace()
    await mkdir(workspace.home, { mode: 0o700 })
    await writeFile(join(workspace.home, 'profiles.yaml'), 'profiles: { default: { modle: x } }\n')
    const { code, states } = await examine(workspace)
    expect([code, states('profiles'), states('configuration')]).to.deep.equal([1, ['fail'], ['ok']])
  })

  it('reports unknown providers in profiles: a failure only if no chat could be answered', async () => {
    await using workspace = await makeWorkspace()
    await mkdir(workspace.home, { mode: 0o700 })
    const examineWith = async (profiles: string) => {
      await writeFile(join(workspace.home, 'profiles.yaml'), profiles)
      const { code, of } = await examine(workspace, ['--port', '0'])
      return { code, found: of('profiles').map(item => [item.state, item.message]), hints: of('profiles').map(item => item.hint) }
    }
    const lost = (who: string, name: string) => `${who} names the provider "${name}", which does not exist`
    const deaf = await examineWith('profiles: { default: { provider: lokal } }\n')
    expect(deaf.code).to.equal(1)
    expect(deaf.found).to.deep.equal([['fail', `${lost('profile "default"', 'lokal')}, so no chat can be answered`]])
    expect(deaf.hints[0]).to.match(/^did you mean "local"\?; fix the name in the profiles/)
    const spare = 'fallback: [{ provider: missing, model: x }, { provider: local, model: local-1 }]'
    const { code, found, hints } = await examineWith(
      `profiles: { default: { provider: lokal, ${spare} }, b: { provider: far } }\n`
    )
    expect([code, found]).to.deep.equal([
      0,
      [
        ['warn', lost('profile "default"', 'lokal')],
        ['warn', lost('fallback of "default"', 'missing')],
        ['warn', lost('profile "b"', 'far')],
      ],
    ])
    expect(hints[1]).to.match(/^there are: local; /)
  })

  it('finds a damaged store', async () => {
    await using workspace = await makeWorkspace()
    await mkdir(workspace.home, { mode: 0o700 })
    await writeFile(join(workspace.home, 'svc.db'), 'no database at all, but long enough to be a mistake for one')
    const { code, of } = await examine(workspace)
    expect([code, of('store')[0]?.state]).to.deep.equal([1, 'fail'])
    expect(of('store')[0]?.hint).to.be.a('string')
  })

  it('warns of a home that others may look into', async () => {
    await using workspace = await makeWorkspace()
    await mkdir(workspace.home, { mode: 0o700 })
    await chmod(workspace.home, 0o755)
    const { code, of } = await examine(workspace, ['--port', '0'])
    expect([code, of('home').map(item => item.hint)]).to.deep.equal([0, [undefined, `chmod 700 ${workspace.home}`]])
  })

  it('fails where the home is no folder', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('../home', '')
    const { code, states } = await examine(workspace)
    expect([code, states('home')]).to.deep.equal([1, ['fail']])
  })

  it('finds a port that another program has', async () => {
    await using workspace = await makeWorkspace()
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const { code, of } = await examine(workspace, ['--port', String(port)])
    other.close()
    expect([code, of('port')[0]?.state]).to.deep.equal([1, 'fail'])
    expect(of('port')[0]?.hint).to.contain('--port')
  })

  it('looks at certificate and key', async () => {
    await using workspace = await makeWorkspace()
    const made = makeCertificate()
    const good = await writeCertificate(workspace.folder, made)
    await chmod(good.key, 0o600)
    const soon = await examine(workspace, ['--ssl-cert', good.cert, '--ssl-key', good.key, '--port', '0'])
    expect([soon.code, soon.of('tls').map(item => item.message)]).to.satisfy(
      ([code, [message]]: [number, string[]]) => code === 0 && /expires in \d days/.test(message!)
    )
    await workspace.write('svc.config.json', JSON.stringify({ server: { ssl: { cert: good.cert } } }))
    expect((await examine(workspace)).of('tls').map(item => [item.state, item.hint])).to.deep.equal([
      ['warn', 'Set server.ssl.enabled to true'],
    ])
    await writeFile(good.key, makeCertificate().key)
    const { code, findings } = await examine(workspace, ['--ssl-cert', good.cert, '--ssl-key', good.key])
    expect(code).to.equal(1)
    expect(findings.some(finding => finding.state === 'fail' && finding.message.includes('key.pem') && finding.hint)).to.equal(
      true
    )
  })

  it('finds what would keep the tool server from starting: its key, and names that no tool has', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'mcp: { server: { enabled: true, auth: { required: true } } }\n')
    const without = await examine(workspace)
    expect([without.code, without.states('authentication')]).to.deep.equal([1, ['ok', 'fail']])
    expect(without.of('authentication')[1]?.message).to.contain('mcp_key').and.contain('SVC_MCP_API_KEY')
    await workspace.write('svc.config.yaml', 'mcp: { server: { enabled: true, tools: [curent_time] } }\n')
    expect(
      (await examine(workspace))
        .of('plugins')
        .map(({ message }) => message)
        .join()
    ).to.contain('did you mean "current_time"?')
  })

  it('reports authentication that would not start, and a server without authentication', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'server: { auth: { enabled: true } }\n')
    const without = await examine(workspace)
    expect([without.code, without.states('authentication').toSorted()]).to.deep.equal([1, ['fail', 'ok', 'ok']])
    expect(without.of('authentication').find(({ state }) => state === 'fail')?.message).to.contain('SVC_API_KEY')
    const given = await examine(workspace, ['--port', '0'], { SVC_API_KEY: 'a-secret-key-of-32-characters-00' })
    expect([given.code, given.states('authentication').toSorted()]).to.deep.equal([0, ['ok', 'ok', 'ok']])
    const weak = await examine(workspace, ['--port', '0'], { SVC_API_KEY: 'my-secret-password' })
    expect([weak.code, weak.states('authentication').toSorted()]).to.deep.equal([0, ['ok', 'ok', 'warn']])
    expect(weak.of('authentication').find(({ state }) => state === 'warn')?.message).to.contain('SVC_API_KEY can be guessed')
    expect(weak.of('authentication').find(({ state }) => state === 'warn')?.hint).to.contain('openssl rand -hex 32')
    expect(JSON.stringify(weak.findings)).to.not.contain('my-secret-password')
    await workspace.write('svc.config.yaml', 'server: { host: 0.0.0.0 }\n')
    expect((await examine(workspace)).states('authentication')).to.deep.equal(['warn'])
  })

  it('finds a provider that does not answer', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('package.json', '{ "type": "module" }')
    await workspace.write(
      'mute.ts',
      `import { definePlugin } from '@svc/core'
import { Providers } from '@svc/core/contracts'
export default definePlugin({ setup: scope => void scope.add(Providers, 'mute', {
  features: { tool_calling: false, streaming: true, vision: false },
  models: async () => ({ models: [], open: true }), countTokens: async () => 0, chat: async function* () {},
  probe: () => new Promise(() => {}),
}) })`
    )
    await workspace.write('svc.config.yaml', 'plugins: [./mute.ts]\n')
    const { code, of, states } = await examine(workspace)
    expect([code, states('provider mute'), states('provider local')]).to.deep.equal([1, ['fail'], ['ok']])
    expect(of('provider mute')[0]?.message).to.contain('2000 ms')
  })

  it('tries the sandbox and says what will be missing without it', async () => {
    await using workspace = await makeWorkspace()
    const env = await withBwrap(
      workspace,
      '[ "$1" = --version ] && exit 0\necho "bwrap: No permissions to create new namespace" >&2; exit 1'
    )
    const { code, of } = await examine(workspace, ['--port', '0'], env)
    expect([code, of('sandbox')[0]?.state]).to.deep.equal([0, 'warn'])
    expect(of('sandbox')[0]?.message).to.contain('No permissions to create new namespace').and.contain('svc will refuse')
    expect(of('sandbox')[0]?.hint).to.be.a('string')
    const none = await examine(workspace, [], { PATH: join(workspace.folder, 'nowhere') })
    expect(none.of('sandbox')[0]?.hint).to.match(/install bubblewrap/i)
  })
})
