import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readLock } from '@svc/plugin-manager/set'
import { expect } from 'chai'
import { createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { CONDITIONS, SVC } from '../support/entry.ts'
import { type Registry, startRegistry } from '../support/registry.ts'
import { type Service, startService } from '../support/service.ts'
import { disposable, startLoad } from '../support/steady-load.ts'
import { configureFew, TIDES, type Tides, tidesFile, tidesTarball } from '../support/tides.ts'
import { describeWith } from '../support/needs.ts'

/** The life of one plugin in one server: each test goes on where the last one has ended. */
describeWith('bubblewrap', 'a plugin that is installed while svc serves', function () {
  this.timeout(120_000)
  let folder: string
  let home: string
  let registry: Registry
  let service: Service

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-tides-'))
    home = join(folder, 'home')
    await configureFew(folder, { plugins: [fileURLToPath(new URL('../support/stuck.ts', import.meta.url))] })
    registry = await startRegistry()
    service = await startService({ home, cwd: folder, args: ['--workers', '2'] })
    await service.seen(/"event":"worker_ready"/)
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    await registry[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  const npm = () => ({
    npm_config_registry: registry.url,
    npm_config_cache: join(folder, 'cache'),
    npm_config_userconfig: join(folder, 'npmrc'),
    HOME: folder,
  })
  const plugins = (...args: string[]) => runSvc(['plugins', ...args], { home, cwd: folder, env: npm() })
  /** What each of the two workers says, asked over a connection of its own: old workers answer on those that are open. */
  const tides = async () => {
    const replies = new Map<string, string>()
    while (replies.size < 2) {
      using client = disposable(createClient(service.url))
      const { text: pid } = await client.get('/pid')
      if (!replies.has(pid)) replies.set(pid, (await client.post('/api/v1/chat', { message: '/tool tides {}' })).text)
    }
    return [...replies.values()]
  }
  const allTell = async (version: string) => {
    for (const text of await tides()) expect(text).to.contain(`the tides of ${version}`)
  }
  const noneTells = async () => {
    for (const text of await tides()) expect(text).to.not.contain('the tides of')
  }
  const publish = async (version: string, svc: object = {}, more: Partial<Tides> = {}) => {
    const { file, pkg } = await tidesTarball(folder, { version, svc, ...more })
    await registry.publish(file, pkg)
  }

  it('comes from the registry without a failed request, once it has been shown what it asks for', async () => {
    await publish('1.0.0', { permissions: { env: ['TIDES_KEY'] } }, { asksCore: true })
    const load = startLoad(service.url)
    const { code, out, err } = await plugins('install', TIDES, '--yes')
    expect(await load.stop()).to.be.above(20)
    expect(code, err).to.equal(0)
    expect(load.failures).to.deep.equal([])
    expect(out).to.contain('from      the registry, as svc-plugin-tides').and.contain('may       read the variable TIDES_KEY')
    expect(out).to.contain('brings    no other packages').and.contain('runs      in its own process')
    expect(out).to.contain(`installed ${TIDES} 1.0.0; ${service.url} has loaded the change`)
    expect(out).to.contain(
      `note: of the variables that ${TIDES} can read, TIDES_KEY is not set in the server at ${service.url}: `
    )
    await allTell('1.0.0')
  })

  it('is updated only when there is something newer, asked about again because it wants more, and without a failed request', async () => {
    const none = await plugins('update', '--json')
    expect(none.code, none.err).to.equal(0)
    expect(JSON.parse(none.out)).to.deep.equal({ ok: true, plugins: [], removed: [] })
    await publish('1.1.0', { permissions: { env: ['TIDES_KEY', 'MOON_KEY'], network: ['moon.example'] } })
    const asked = await plugins('update')
    expect(asked.code).to.equal(2)
    expect(asked.err).to.contain('CONSENT_MISSING').and.contain('--yes')
    expect(asked.out).to.contain('for MORE: network moon.example').and.contain('for MORE: env MOON_KEY')
    await allTell('1.0.0')
    const load = startLoad(service.url)
    const done = await plugins('update', TIDES, '--yes', '--json')
    expect(await load.stop()).to.be.above(20)
    expect(done.code, done.err).to.equal(0)
    expect(load.failures).to.deep.equal([])
    const [only] = (JSON.parse(done.out) as { plugins: { permission_change: object; from_version: string }[] }).plugins
    expect(only).to.deep.include({ from_version: '1.0.0', version: '1.1.0', isolation: 'process' })
    expect(only?.permission_change).to.deep.equal({ added: ['env MOON_KEY', 'network moon.example'], removed: [] })
    await allTell('1.1.0')
  })

  it('goes back to an older version that is asked for by name', async () => {
    const { code, err } = await plugins('install', `${TIDES}@1.0.0`, '--yes')
    expect(code, err).to.equal(0)
    await allTell('1.0.0')
  })

  it('keeps its loaded code if a file changes: a reload rejects the change, and the hint fixes it', async () => {
    const sets = join(home, 'plugins', 'sets')
    const { set } = await readLock(home)
    const file = join(sets, set, 'node_modules', TIDES, 'index.js')
    await writeFile(file, (await readFile(file, 'utf8')).replace('the tides of', 'no tides of'))
    const reload = await runSvc(['reload'], { home, cwd: folder })
    expect([reload.code, reload.err]).to.satisfy(
      ([code, err]: [number, string]) =>
        code === 1 && err.includes(`PLUGIN_CHANGED  ${TIDES}`) && err.includes('svc plugins update')
    )
    await allTell('1.0.0')
    const { code, err } = await plugins('update', TIDES, '--yes')
    expect(code, err).to.equal(0)
    await allTell('1.0.0')
  })

  it('keeps the old version if the new one cannot start, and reports the reason', async () => {
    const lock = () => readFile(join(home, 'svc-plugins.lock'), 'utf8')
    const before = await lock()
    const broken = await tidesFile(folder, { version: '2.0.0', setup: "throw new Error('no moon tonight')" })
    const { code, out, err } = await plugins('install', broken, '--yes', '--json')
    expect(code, err).to.equal(1)
    const { ok, rolled_back: back, problems } = JSON.parse(out) as { ok: boolean; rolled_back: boolean; problems: object[] }
    expect([ok, back]).to.deep.equal([false, true])
    expect(problems[0]).to.deep.include({ code: 'SETUP_FAILED', plugin: TIDES, message: 'its setup failed: no moon tonight' })
    await allTell('1.0.0')
    expect(await lock()).to.equal(before)
  })

  it('stays as it was where the command is killed while the server tries the successor', async () => {
    const before = await readLock(home)
    const next = await tidesFile(folder, { version: '3.0.0', setup: LATE })
    const tried = service.seen(/"event":"reloading"/, 1 + (service.output().match(/"event":"reloading"/g) ?? []).length)
    const child = spawn(process.execPath, [...SVC, 'plugins', 'install', next, '--yes'], {
      cwd: folder,
      env: { PATH: process.env.PATH, ...npm(), SVC_HOME: home },
      stdio: 'ignore',
    })
    const gone = once(child, 'exit')
    await Promise.race([tried, gone.then(() => Promise.reject(new Error('it ended before the server tried')))])
    expect((await readLock(home)).plugins[0]).to.deep.include({ version: '3.0.0' })
    child.kill('SIGKILL')
    await gone
    expect(await readLock(home)).to.deep.equal(before)
    await allTell('1.0.0')
  })

  it('is rolled back by the next command if the command was killed while the server served the new version', async () => {
    const next = await tidesFile(folder, { version: '3.0.0' })
    const child = spawn(process.execPath, [...CONDITIONS, INSTALLING, home, next, 'trial'], {
      env: { PATH: process.env.PATH, ...npm() },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const gone = once(child, 'exit')
    await Promise.race([once(child.stdout, 'data'), gone.then(() => Promise.reject(new Error('it was never on trial')))])
    const reload = await runSvc(['reload'], { home, cwd: folder })
    expect(reload.code, reload.err).to.equal(0)
    await allTell('3.0.0')
    child.kill('SIGKILL')
    await gone
    const { code, err } = await plugins('update', '--dry-run')
    expect(code, err).to.equal(0)
    await allTell('1.0.0')
  })

  it('is switched off and on again', async () => {
    const off = await plugins('disable', TIDES)
    expect(off.code, off.err).to.equal(0)
    await noneTells()
    const list = await plugins('list', '--json')
    const { disabled } = JSON.parse(list.out) as { disabled: object[] }
    expect(disabled[0]).to.deep.include({ name: TIDES, version: '1.0.0', health: 'disabled' })
    const on = await plugins('enable', TIDES)
    expect(on.code, on.err).to.equal(0)
    await allTell('1.0.0')
  })

  it('is found in the list with its origin, where it runs and how it is, and in detail', async () => {
    const { out } = await plugins('list', '--json')
    const all = (JSON.parse(out) as { plugins: { name: string; origin: string }[] }).plugins
    expect(all.find(plugin => plugin.name === TIDES)).to.deep.include({
      origin: `registry ${TIDES}@1.0.0`,
      isolation: 'process',
      health: 'running',
      restarts: 0,
      permissions: { env: ['TIDES_KEY'] },
    })
    expect(all.find(plugin => plugin.name === '@svc/plugin-http')).to.deep.include({ origin: 'svc', isolation: 'in-process' })
    const info = await plugins('info', TIDES)
    expect(info.code, info.err).to.equal(0)
    expect(info.out)
      .to.contain('health    running')
      .and.contain('files     they match the installed ones')
      .and.contain('tools: tides')
    expect((await plugins('search', 'tides', '--json')).out).to.contain(`"name": "${TIDES}"`)
  })

  it('leaves no trace when it is taken out, and no request fails', async () => {
    const load = startLoad(service.url)
    const { code, out, err } = await plugins('uninstall', TIDES)
    expect(await load.stop()).to.be.above(20)
    expect(code, err).to.equal(0)
    expect(out).to.contain(`uninstalled ${TIDES}`)
    expect(load.failures).to.deep.equal([])
    await noneTells()
    const left = await readdir(home, { recursive: true })
    expect(left.filter(name => name.includes('plugins') || name.includes('tides'))).to.deep.equal([])
  })
})

/** Fails when whoever installs it is gone for long. */
const LATE = "return new Promise((_, fail) => setTimeout(() => fail(new Error('no moon tonight')), 2_000))"

const INSTALLING = fileURLToPath(new URL('../../plugins/admin/plugin-manager/test/set/support/installing.ts', import.meta.url))
