import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { sideBySide } from '../../test/support/side-by-side.ts'
import { makeWorkspace } from './support/svc.ts'

interface Shown {
  readonly values: readonly { readonly key: string; readonly value: unknown; readonly source: string }[]
  readonly plugins: readonly { readonly name: string; readonly source: string }[]
}
const rowOf = (out: string, key: string) => (JSON.parse(out) as Shown).values.find(row => row.key === key)

describe('svc config show', () => {
  const it = sideBySide()
  it('shows the value in effect and its source: default, file and line, variable, flag', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'server:\n  port: 1\n  host: 127.0.0.2\n  body_limit: 50000\n')
    const env = { SVC_SERVER__PORT: '2', SVC_SERVER__HOST: '127.0.0.3' }
    const { out, code } = await workspace.svc(['config', 'show', '--json', '--port', '3'], { env })
    expect(code).to.equal(0)
    expect(rowOf(out, 'server.port')).to.include({ value: 3, source: 'flags' })
    expect(rowOf(out, 'server.host')).to.include({ value: '127.0.0.3', source: 'environment SVC_SERVER__HOST' })
    expect(rowOf(out, 'server.body_limit')).to.include({ value: 50_000, source: 'svc.config.yaml:4' })
    expect(rowOf(out, 'server.shutdown_timeout')).to.include({ value: 30, source: 'default' })
  })

  it('takes the file of the home where the project says nothing, and --config in place of the project', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('../home/svc.config.yaml', 'server:\n  port: 1\n  body_limit: 70000\n')
    await workspace.write('svc.config.json', '{ "server": { "port": 2 } }')
    await workspace.write('other.yaml', 'server:\n  port: 4\n')
    expect(rowOf((await workspace.svc(['config', 'show', '--json'])).out, 'server.body_limit')?.source).to.equal(
      `${workspace.home}/svc.config.yaml:3`
    )
    const usual = (await workspace.svc(['config', 'show', '--json'])).out
    expect([rowOf(usual, 'server.port')?.value, rowOf(usual, 'server.body_limit')?.value]).to.deep.equal([2, 70_000])
    const other = (await workspace.svc(['config', 'show', '--json', '--config', 'other.yaml'])).out
    expect(rowOf(other, 'server.port')).to.include({ value: 4, source: 'other.yaml:2' })
  })

  it('masks secrets: by name, in headers and environments, in addresses and what follows them', async () => {
    await using workspace = await makeWorkspace()
    const secrets = ['tops3cret', 'hush', 'pa55', 'whisper', 'sesame', 'raw', 'mellon', 'ss@', 'murmur']
    await workspace.write(
      'svc.config.yaml',
      `mcp:\n  clients:\n    - name: a\n      url: http://example.test/\n      oauth: { client_secret: tops3cret }\n    - name: b\n      command: x\n      env: { TOKEN_A: hush }\ntools:\n  web:\n    search: { type: searxng, url: 'http://me:pa55@example.test/' }\nserver:\n  ssl: { key: whisper }\nproviders:\n  openai: { base_url: 'http://127.0.0.1:1/v1?key=sesame&raw' }\n  google: { base_url: '127.0.0.1:1/v1?key=mellon' }\n  anthropic: { base_url: 'http://me:p@ss@127.0.0.1:1/v1#murmur' }\n`
    )
    for (const args of [
      ['config', 'show'],
      ['config', 'show', '--json'],
    ]) {
      const { out, code } = await workspace.svc(args)
      expect(code).to.equal(0)
      for (const secret of secrets) expect(out).to.not.contain(secret)
      expect(out).to.contain('(secret)@example.test').and.contain('http://127.0.0.1:1/v1?key=(secret)&(secret)')
    }
  })

  it('shows one section, and the plugins with the place that names them', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write(
      'svc.config.yaml',
      'plugins:\n  - use: "@svc/plugin-metrics"\n    enabled: false\n  - "@svc/plugin-store-memory"\n  - use: "@svc/plugin-store-sqlite"\n    enabled: false\n'
    )
    const section = await workspace.svc(['config', 'show', 'server', '--json'])
    expect((JSON.parse(section.out) as Shown).values.map(row => row.key.split('.')[0])).to.deep.equal(
      Array(section.out.match(/"key"/g)?.length ?? 0).fill('server')
    )
    const { plugins } = JSON.parse((await workspace.svc(['config', 'show', '--json'])).out) as Shown
    expect(plugins.map(plugin => plugin.name)).to.not.include('@svc/plugin-metrics')
    expect(plugins.find(plugin => plugin.name === '@svc/plugin-store-memory')?.source).to.equal('svc.config.yaml')
    const unknown = await workspace.svc(['config', 'show', 'server.prot'])
    expect(unknown.code).to.equal(1)
    expect(unknown.err)
      .to.match(/^CONFIG_UNKNOWN_KEY/)
      .and.contain('did you mean "server.port"?')
  })

  it('says of a documented key that it is not set, and what it does', async () => {
    await using workspace = await makeWorkspace()
    const unset = await workspace.svc(['config', 'show', 'selection.profile'])
    expect(unset).to.include({ code: 0, out: 'selection.profile    not set  Profile at start\n' })
    await workspace.write('without.yaml', "plugins: [{ use: '@svc/plugin-recommend', enabled: false }]\n")
    const nobodys = ['config', 'show', 'recommend', '--json', '--config', 'without.yaml']
    const section = JSON.parse((await workspace.svc(nobodys)).out) as Shown
    expect(section.values.map(row => [row.key, row.value, row.source])).to.deep.equal([
      ['recommend.approval', undefined, 'not set'],
    ])
    const set = JSON.parse((await workspace.svc(['config', 'show', 'server.port', '--json', '--port', '5'])).out) as Shown
    expect(set.values).to.deep.equal([
      { key: 'server.port', value: 5, source: 'flags', description: 'Port to listen on; 0 picks a free port.' },
    ])
    expect((await workspace.svc(['config', 'show', 'providers.local.type'])).code).to.equal(0)
  })

  it('shows what svc serve itself acts on, with its default', async () => {
    await using workspace = await makeWorkspace()
    const all = (await workspace.svc(['config', 'show', '--json'])).out
    expect(rowOf(all, 'server.workers')).to.deep.equal({ key: 'server.workers', value: 1, source: 'default' })
    const { out } = await workspace.svc(['config', 'show', 'server.hang_timeout_ms'])
    expect(out).to.match(/^server.hang_timeout_ms +10000 +default +Milliseconds after which svc kills and replaces a worker/)
    await workspace.write('svc.config.yaml', 'server: { workers: 2 }\n')
    expect((await workspace.svc(['config', 'show', 'server.workers'])).out).to.match(
      /^server.workers +2 +svc.config.yaml:1 +Number of worker processes/
    )
  })

  it('shows the header names of server.cors', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'server: { cors: { enabled: true, headers: [X-Mine] } }\n')
    expect((await workspace.svc(['config', 'show', 'server.cors.headers'])).out)
      .to.contain('X-Mine')
      .and.not.contain('(secret)')
  })

  it('shows what is in force where one of several files cannot be read, and says so', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('../home/svc.config.yaml', 'server: {')
    await workspace.write('svc.config.yaml', 'server:\n  port: 1\n')
    const { code, out, err } = await workspace.svc(['config', 'show', 'server.port'])
    expect(code).to.equal(1)
    expect(out).to.contain('svc.config.yaml:2')
    expect(err).to.contain(`${workspace.home}/svc.config.yaml:1`)
  })
})

describe('svc config check', () => {
  const it = sideBySide()
  it('ends with 0 for a valid configuration', async () => {
    await using workspace = await makeWorkspace()
    const { code, out, err } = await workspace.svc(['config', 'check'])
    expect([code, err]).to.deep.equal([0, ''])
    expect(out).to.contain('valid')
  })

  it('reports a configured file of profiles that does not exist, and writes none', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'selection: { profiles_file: mine.yaml }\n')
    const { code, err } = await workspace.svc(['config', 'check'])
    expect(code).to.equal(1)
    expect(err).to.match(/^PROFILES_MISSING[^]*mine\.yaml/m)
    expect((await workspace.svc(['chat', 'hello'])).code).to.equal(1)
    expect(existsSync(join(workspace.folder, 'mine.yaml'))).to.equal(false)
  })

  it('names the entry of each provider without a key', async () => {
    await using workspace = await makeWorkspace()
    const entries = [
      'mine: { type: openai, preset: groq, api_key_env: MY_KEY }',
      'other: { type: anthropic }',
      'third: { type: google }',
      'near: { type: openai, base_url: "http://127.0.0.1:1/v1" }',
    ]
    await workspace.write('svc.config.yaml', `providers:\n${entries.map(entry => `  ${entry}\n`).join('')}`)
    const env = { ANTHROPIC_API_KEY: '', GEMINI_API_KEY: '', GOOGLE_API_KEY: '' }
    const { code, out } = await workspace.svc(['config', 'check', '--json'], { env })
    const { problems } = JSON.parse(out) as { problems: { code: string; message: string }[] }
    expect(code).to.equal(1)
    expect(problems.map(problem => `${problem.code} ${problem.message}`)).to.have.members([
      'PROVIDER_KEY providers.mine: the variable MY_KEY is not set',
      'PROVIDER_KEY providers.other: the variable ANTHROPIC_API_KEY is not set',
      'PROVIDER_KEY providers.third: the variable GEMINI_API_KEY is not set',
    ])
    const good = await workspace.svc(['config', 'check'], { env: { ANTHROPIC_API_KEY: 'a', GEMINI_API_KEY: 'b', MY_KEY: 'c' } })
    expect(good.code).to.equal(0)
  })

  it('lists all problems with file and line, and exits with 1', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'server:\n  port: x\nlog:\n  level: loud\ntols: {}\n')
    const { code, out, err } = await workspace.svc(['config', 'check'], { env: { SVC_A__B: '1' } })
    expect([code, out]).to.deep.equal([1, ''])
    for (const words of [
      'svc.config.yaml:2',
      'svc.config.yaml:4',
      'svc.config.yaml:5',

      'environment SVC_A__B',
      'did you mean "tools"',
    ])
      expect(err).to.contain(words)
    const json = await workspace.svc(['config', 'check', '--json'], { env: { SVC_A__B: '1' } })
    const report = JSON.parse(json.out) as { ok: boolean; problems: { code: string; where?: string }[] }
    expect(report.ok).to.equal(false)
    expect(report.problems).to.have.length(4)
    expect(report.problems.map(problem => problem.where)).to.include('environment SVC_A__B')
  })

  it('reports profiles.yaml with all else, writes none, and ends with 1', async () => {
    await using workspace = await makeWorkspace()
    expect((await workspace.svc(['config', 'check'])).code).to.equal(0)
    expect(existsSync(join(workspace.home, 'profiles.yaml'))).to.equal(false)
    await workspace.write('../home/profiles.yaml', 'default: none\nprofiles:\n  a: { temprature: 1 }\n  b: { temperature: 3 }\n')
    await workspace.write(
      'svc.config.yaml',
      'plugins:\n  - no-such-plugin\n  - { use: b, optinal: true }\nserver:\n  port: x\ntols: {}\n'
    )
    const { code, out } = await workspace.svc(['config', 'check', '--json', '--profile', 'nope'])
    expect(code).to.equal(1)
    const { problems } = JSON.parse(out) as { problems: { code: string; where?: string; hint: string; plugin?: string }[] }
    const file = `${workspace.home}/profiles.yaml`
    expect(problems.map(fault => [fault.code, fault.where])).to.have.deep.members([
      ['CONFIG_UNKNOWN_KEY', 'svc.config.yaml:3'],
      ['PLUGIN_UNKNOWN', undefined],
      ['PLUGIN_UNKNOWN', undefined],
      ['CONFIG_UNKNOWN_KEY', 'svc.config.yaml:6'],
      ['CONFIG_INVALID', 'svc.config.yaml:5'],
      ['PROFILES_INVALID', `${file}:3`],
      ['PROFILES_INVALID', `${file}:4`],
      ['PROFILES_INVALID', `${file}:1`],
      ['INVALID_VALUE', undefined],
    ])
    expect(problems.find(fault => fault.where === `${file}:3`)).to.include({
      plugin: '@svc/plugin-selection',
      hint: 'did you mean "temperature"?',
    })
    expect(problems.find(fault => fault.where === 'svc.config.yaml:6')?.hint)
      .to.contain('did you mean "tools"?')
      .and.contain('no-such-plugin')
  })

  it('refuses two files in one folder, and names both', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'server:\n  port: 1\n')
    await workspace.write('svc.config.json', '{}')
    const { code, err } = await workspace.svc(['config', 'check'])
    expect(code).to.equal(1)
    expect(err).to.match(/^CONFIG_AMBIGUOUS\n {2}svc\.config\.json and svc\.config\.yaml are in one folder/)
  })

  it('names a plugin that cannot be found', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'plugins:\n  - no-such-plugin\nserver:\n  port: x\n')
    const { code, err } = await workspace.svc(['config', 'check'])
    expect(code).to.equal(1)
    expect(err)
      .to.match(/^PLUGIN_UNKNOWN  no-such-plugin/m)
      .and.contain('svc.config.yaml:4')
  })

  it('finds what a server refuses when it opens: a missing key, and a folder that does not exist', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'server: { auth: { enabled: true } }\ntools: { files: { roots: [missing] } }\n')
    const { code, err } = await workspace.svc(['config', 'check'], { env: { SVC_API_KEY: '' } })
    expect(code).to.equal(1)
    expect(err)
      .to.match(/^API_KEY_MISSING {2}@svc\/plugin-auth-api-key/m)
      .and.match(/^CONFIG_INVALID {2}@svc\/plugin-tools-files\n.*missing" does not exist/m)
    const served = await workspace.svc(['serve', '--port', '0'], { env: { SVC_API_KEY: '' } })
    expect(served.code).to.equal(1)
    await workspace.write('svc.config.yaml', 'server: { auth: { enabled: true } }\n')
    expect(
      (await workspace.svc(['config', 'check'], { env: { SVC_API_KEY: 'a-key-of-a-test-with-32-characters' } })).code
    ).to.equal(0)
    expect((await workspace.svc(['serve', '--port', '0'], { env: { SVC_API_KEY: '' } })).err).to.contain('API_KEY_MISSING')
  })

  it('finds what only svc mcp serve refuses, and says so', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', "mcp: { server: { tools: [read_fil, read_file, 'list_*', far__tool] } }\n")
    const { code, err } = await workspace.svc(['config', 'check'])
    expect(code).to.equal(1)
    expect(err).to.match(/^Only `svc mcp serve` would refuse:\n\nMCP_TOOL_UNKNOWN[^]*"read_fil"[^]*did you mean "read_file"/)
    expect(err.match(/MCP_TOOL_UNKNOWN/g)).to.have.length(1)
    const json = JSON.parse((await workspace.svc(['config', 'check', '--json'])).out) as {
      problems: { code: string; command?: string }[]
    }
    expect(json.problems.map(({ code: problem, command }) => [problem, command])).to.deep.equal([
      ['MCP_TOOL_UNKNOWN', 'svc mcp serve'],
    ])
    expect((await workspace.svc(['mcp', 'serve', '--port', '0'])).code).to.equal(1)
  })

  it('says what it did not check, and with --start also what the plugins refuse when they start', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('refusing.mjs', "export default { setup() { throw new Error('the tide is out') } }\n")
    await workspace.write('svc.config.yaml', 'plugins: [./refusing.mjs]\n')
    const checked = await workspace.svc(['config', 'check'])
    expect([checked.code, checked.err]).to.deep.equal([0, ''])
    expect(checked.out)
      .to.contain('Not checked:\n')
      .and.contain('whether the address of the server is free')
      .and.contain('the files of workflows (svc workflows validate <file>)')
      .and.match(/what the \d+ plugins check when they start \(svc config check --start\)/)
    const started = await workspace.svc(['config', 'check', '--start'])
    expect(started.code).to.equal(1)
    expect(started.err).to.contain('SETUP_FAILED').and.contain('the tide is out')
  })

  it('says that it did not check secrets, and with --start finds those that are missing', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'providers: { mine: { type: openai, api_key: "${secret:mine_key}" } }\n')
    const checked = await workspace.svc(['config', 'check'])
    expect([checked.code, checked.err]).to.deep.equal([0, ''])
    expect(checked.out).to.match(/Not checked:[^]*the secrets mine_key, and the settings with them \(svc config check --start\)/)
    const started = await workspace.svc(['config', 'check', '--start'])
    expect(started.code).to.equal(1)
    expect(started.err).to.contain('SECRET_UNKNOWN').and.contain('"mine_key"')
    await workspace.write('svc.config.yaml', '')
    expect((await workspace.svc(['config', 'check'])).out).to.not.contain('secrets')
  })

  it('names the line of a file that cannot be read', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'server:\n  port: 1\n port: 2\n')
    const { code, err } = await workspace.svc(['config', 'check'])
    expect(code).to.equal(1)
    expect(err)
      .to.match(/^CONFIG_UNREADABLE/)
      .and.match(/svc\.config\.yaml:3/)
  })
})
