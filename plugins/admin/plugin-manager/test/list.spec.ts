import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import type { Lock } from '../src/set.ts'
import { expect } from 'chai'
import { configureFew, FEW, TIDES, tidesFolder } from '../../../../test/support/tides.ts'
import { link, linkedPlace } from './support/linked.ts'
import { makeWorkspace, type Workspace } from '../../../../cli/test/support/svc.ts'

const VARIABLE = 'A_TIDES_KEY_THAT_NOBODY_SETS'

describe('svc plugins, for plugins that a user has added', function () {
  this.timeout(60_000)
  let workspace: Workspace
  before(async () => {
    const env = { permissions: { env: ['PATH', VARIABLE, 'NOBODY_HAS_*'] } }
    const moon = { contributes: { tools: ['moon'] } }
    workspace = await linkedPlace(
      { version: '1.0.0', svc: env },
      { version: '2.0.0', name: 'svc-plugin-moon', svc: moon, enabled: false }
    )
  })
  after(() => workspace[Symbol.asyncDispose]())

  it('list: in full, and how many come with svc; all with --all', async () => {
    const { code, out } = await workspace.svc(['plugins', 'list'])
    expect(code).to.equal(0)
    expect(out)
      .to.match(/^svc \S+: 2 plugins installed, configured or failed, of /)
      .and.match(/ svc-plugin-tides 1\.0\.0 {2}tool/)
      .and.match(/ svc-plugin-moon 2\.0\.0 disabled\n.*from {6}link /)
      .and.match(new RegExp(`└─ ${FEW.length} of svc itself {2}svc plugins list --all shows them\n$`))
      .and.not.contain('@svc/plugin-chat')
    expect((await workspace.svc(['plugins', 'list', '--all'])).out)
      .to.contain('@svc/plugin-chat')
      .and.not.contain('of svc itself')
    const json = JSON.parse((await workspace.svc(['plugins', 'list', '--json'])).out) as { plugins: object[]; left_out: object[] }
    expect(json.plugins.length + json.left_out.length).to.equal(FEW.length + 1)
  })

  it('list: those of such a name, of svc too; ends with 1 where none has it', async () => {
    const found = await workspace.svc(['plugins', 'list', 'moon', '@svc/plugin-c*', '--json'])
    const { plugins, disabled } = JSON.parse(found.out) as { plugins: { name: string }[]; disabled: { name: string }[] }
    expect([...plugins, ...disabled].map(plugin => plugin.name).sort()).to.deep.equal([
      '@svc/plugin-chat',
      '@svc/plugin-conversations',
      'svc-plugin-moon',
    ])
    const none = await workspace.svc(['plugins', 'list', 'sun'])
    expect(none).to.include({ code: 1, out: '', err: 'no plugin is called like "sun"\n' })
  })

  it('info, doctor and the log of a start: which variables that one declares are not set, by name, and what to do', async () => {
    const unset = `${VARIABLE}, NOBODY_HAS_* are not set here: If the plugin needs it, export it and restart the server (svc serve)`
    expect((await workspace.svc(['plugins', 'info', TIDES])).out).to.contain(`unset     ${unset}`)
    const { findings } = JSON.parse((await workspace.svc(['plugins', 'doctor', '--json'])).out) as {
      findings: { name: string }[]
    }
    expect(findings.filter(finding => finding.name === 'variables')).to.have.length(1)
    const server = await workspace.serve([], { env: { NOBODY_HAS_IT: 'yes' } })
    const { out } = await server.end()
    const line = out.split('\n').find(item => item.includes('not set here'))!
    expect(JSON.parse(line)).to.deep.include({ level: 40, plugin: TIDES, unset: [VARIABLE] })
  })
})

describe('an optional plugin that has failed', () => {
  it('stands in svc plugins list, with the reason, and makes it end with 1', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write(
      'broken.mjs',
      "export default { requires: {}, optional: {}, setup() { throw new Error('no moon tonight') } }"
    )
    await configureFew(workspace.folder)
    const config = JSON.parse(await readFile(join(workspace.folder, 'svc.config.json'), 'utf8')) as { plugins: unknown[] }
    await workspace.write(
      'svc.config.json',
      JSON.stringify({ plugins: [...config.plugins, { use: './broken.mjs', optional: true }] })
    )
    const { code, out } = await workspace.svc(['plugins', 'list'])
    expect(code).to.equal(1)
    expect(out)
      .to.match(/ broken .*FAILED$/m)
      .and.contain('no moon tonight')
  })
})

describe('svc plugins disable, enable and uninstall', function () {
  this.timeout(60_000)

  it('ask no question, and accept --yes', async () => {
    await using workspace = await linkedPlace({ version: '1.0.0' })
    const plugins = async () => (JSON.parse(await readFile(join(workspace.home, 'svc-plugins.lock'), 'utf8')) as Lock).plugins
    for (const [verb, yes, enabled] of [
      ['disable', '--yes', false],
      ['enable', '-y', true],
    ] as const) {
      const { code, err } = await workspace.svc(['plugins', verb, TIDES, yes])
      expect([code, (await plugins())[0]?.enabled], err).to.deep.equal([0, enabled])
    }
    const short = TIDES.split('-').at(-1)!
    expect((await workspace.svc(['plugins', 'uninstall', short])).err).to.equal(
      `PLUGIN_NOT_INSTALLED  ${short}\n  is not installed\n  did you mean "${TIDES}"?\n`
    )
    const { code, err } = await workspace.svc(['plugins', 'uninstall', TIDES, '--yes'])
    expect([code, existsSync(join(workspace.home, 'svc-plugins.lock'))], err).to.deep.equal([0, false])
  })
})

describe('svc plugins, from another folder by npm', function () {
  this.timeout(60_000)

  it('takes paths for those of where npm was called, not of the repository', async () => {
    await using workspace = await makeWorkspace()
    await using elsewhere = await makeWorkspace()
    const env = { npm_lifecycle_event: 'svc', INIT_CWD: elsewhere.folder }
    const made = await workspace.svc(['plugins', 'new', 'svc-plugin-here', '--kind', 'tool', '--js'], { env })
    expect(made.code, made.err).to.equal(0)
    expect(made.out).to.contain('svc-plugin-here is in svc-plugin-here:')
    const lint = await workspace.svc(['plugins', 'lint', 'svc-plugin-here'], { env })
    expect(lint.out, lint.err).to.contain('0 errors')
    expect((await workspace.svc(['plugins', 'lint', 'svc-plugin-here'])).err).to.contain('PLUGIN_UNKNOWN')
  })
})

describe('an installed provider without an entry in "providers"', function () {
  this.timeout(60_000)

  const svc = { kind: 'provider', contributes: {}, instances: { section: 'providers', type: 'parrot' } }
  const LINE = 'write providers: { parrot: {} } into svc.config.*'
  let workspace: Workspace
  before(async () => {
    workspace = await linkedPlace({ version: '1.0.0', name: 'svc-plugin-parrot', svc })
  })
  after(() => workspace[Symbol.asyncDispose]())

  it('is in the list of providers, with the line to write', async () => {
    const { out } = await workspace.svc(['providers', 'list'])
    expect(out).to.contain(`parrot: not configured (svc-plugin-parrot is installed): ${LINE}\n`)
  })

  for (const [how, isServed] of [
    ['without a server', false],
    ['with one that runs', true],
  ] as const)
    it(`stands in svc plugins list and info as not configured, with the line to write, ${how}`, async () => {
      const server = isServed ? await workspace.serve() : undefined
      const { out } = await workspace.svc(['plugins', 'list'])
      expect(out)
        .to.match(/^svc \S+: 1 plugin installed, configured or failed, of /)
        .and.match(/ svc-plugin-parrot 1\.0\.0 not configured\n.*from {6}link .*\n/)
        .and.contain(`hint      ${LINE}\n`)
      const named = await workspace.svc(['plugins', 'list', 'parrot', '--json'])
      const { idle } = JSON.parse(named.out) as { idle: object[] }
      expect(named.code).to.equal(0)
      expect(idle).to.have.length(1)
      expect(idle[0]).to.include({ name: 'svc-plugin-parrot', health: 'not configured', hint: LINE })
      expect((await workspace.svc(['plugins', 'info', 'svc-plugin-parrot'])).out).to.contain(
        `health    not configured: ${LINE}\n`
      )
      expect((await server?.end())?.code ?? 0).to.equal(0)
    })
})

describe('svc plugins link, interrupted while a server takes it up', function () {
  this.timeout(60_000)

  it('is taken back, in the server too, and says so', async () => {
    await using workspace = await makeWorkspace()
    await configureFew(workspace.folder)
    const folder = await tidesFolder(workspace.folder, { version: '1.0.0' })
    const server = await workspace.serve()
    const linking = workspace.start(['plugins', 'link', folder, '--yes', '--trust', '--isolation', 'in-process'])
    const said = text(linking.stderr!)
    const ended = once(linking, 'exit')
    await server.said(/svc: reloading/)
    linking.kill('SIGINT')
    expect(await ended).to.deep.equal([130, null])
    expect(await said).to.contain('nothing was changed')
    expect(existsSync(join(workspace.home, 'svc-plugins.lock'))).to.equal(false)
    expect((await workspace.svc(['plugins', 'list', TIDES])).code).to.equal(1)
    expect((await server.end()).code).to.equal(0)
  })
})

describe('svc plugins link and disable, interrupted while a host is started with the change', function () {
  this.timeout(60_000)
  const SLOW =
    "process.getBuiltinModule('node:fs').writeFileSync('began', ''); return new Promise(done => setTimeout(done, 90_000))"

  it('end at once with one Ctrl-C, whatever a setup waits for, and leave what was in force before', async () => {
    await using workspace = await makeWorkspace()
    await configureFew(workspace.folder, { host: { setup_timeout_ms: 90_000 } })
    const began = join(workspace.folder, 'began')
    const interrupted = async (...args: string[]) => {
      const child = workspace.start(['plugins', ...args])
      const said = text(child.stderr!)
      const ended = once(child, 'exit')
      while (!existsSync(began)) await setTimeout(20)
      await rm(began)
      child.kill('SIGINT')
      expect([await ended, (await said).split('\n').at(-2)]).to.deep.equal([[130, null], 'interrupted: nothing was changed'])
    }
    const lock = join(workspace.home, 'svc-plugins.lock')
    const slow = await tidesFolder(workspace.folder, { version: '1.0.0', setup: SLOW })
    await interrupted('link', slow, '--yes', '--trust', '--isolation', 'in-process')
    expect(existsSync(lock)).to.equal(false)
    await link(workspace, [{ name: 'svc-plugin-slow', version: '1.0.0', setup: SLOW }, { version: '1.0.0' }])
    const before = JSON.parse(await readFile(lock, 'utf8')) as object
    await interrupted('disable', TIDES)
    expect(JSON.parse(await readFile(lock, 'utf8'))).to.deep.equal(before)
  })

  const IN_PROCESS = ['--yes', '--trust', '--isolation', 'in-process']

  it('end at once with one Ctrl-C where a setup never lets go of its process, and end that process', async () => {
    await using workspace = await makeWorkspace()
    await configureFew(workspace.folder)
    const began = join(workspace.folder, 'began')
    const setup = `process.getBuiltinModule('node:fs').writeFileSync('began', String(process.pid)); for (;;);`
    const child = workspace.start([
      'plugins',
      'link',
      await tidesFolder(workspace.folder, { version: '1.0.0', setup }),
      ...IN_PROCESS,
    ])
    const said = text(child.stderr!)
    const ended = once(child, 'exit')
    while (!existsSync(began) || (await readFile(began, 'utf8')) === '') await setTimeout(20)
    const pid = Number(await readFile(began, 'utf8'))
    child.kill('SIGINT')
    expect([await ended, (await said).split('\n').at(-2)]).to.deep.equal([[130, null], 'interrupted: nothing was changed'])
    expect(existsSync(join(workspace.home, 'svc-plugins.lock'))).to.equal(false)
    while (existsSync(`/proc/${pid}`)) await setTimeout(20)
  })

  it('change nothing where a setup ends its process', async () => {
    await using workspace = await makeWorkspace()
    await configureFew(workspace.folder)
    const folder = await tidesFolder(workspace.folder, { version: '1.0.0', setup: 'process.exit(3)' })
    const { code, err } = await workspace.svc(['plugins', 'link', folder, ...IN_PROCESS])
    expect(code).to.equal(1)
    expect(err).to.include('SETUP_FAILED').and.include('ended its process (exit code 3)')
    expect(existsSync(join(workspace.home, 'svc-plugins.lock'))).to.equal(false)
  })
})
