import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { existsSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readLock } from '@svc/plugin-manager/set'
import { expect } from 'chai'
import { create } from 'tar'
import { type Answer, createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { describeWith } from '../support/needs.ts'
import { type PackageJson, type Registry, startRegistry, writeFiles } from '../support/registry.ts'
import { type Service, startService } from '../support/service.ts'
import { configureFew, TIDES, type Tides, tidesFile, tidesTarball } from '../support/tides.ts'
import { workersOf } from '../support/two-workers.ts'

const PLUGINS = '/api/v1/plugins'
const NEEDED = ['auth-api-key', 'auth-bearer', 'admin-api', 'manager', 'event-feed', 'queue-store', 'jobs']
const AUTH = { SVC_API_KEY: 'the-key-of-the-operator', SVC_SERVER__AUTH__ENABLED: 'true' }

interface Shown {
  readonly name: string
  readonly version: string
  readonly state: string
  readonly origin: { readonly kind: string; readonly spec?: string }
  readonly accounting: { readonly calls: number; readonly errors: number }
  readonly refusals: Readonly<Record<string, number>>
}
interface Plan {
  readonly hash: string
  readonly plugins: readonly { readonly name: string; readonly version: string; readonly from_version: string | null }[]
  readonly changes: readonly object[]
  readonly is_empty: boolean
}
interface JobRecord {
  readonly id: string
  readonly state: string
  readonly result?: object
  readonly error: { readonly code: string; readonly message: string; readonly details: object } | null
}
interface Problem {
  readonly error_code: string
  readonly error: string
  readonly details: { readonly changed?: string[]; readonly code?: string; readonly reason?: string }
}
const problemOf = ({ body }: Answer) => body as Problem

/** The life of plugins in one server with two workers: each test goes on where the last one has ended. */
describeWith('bubblewrap', 'plugins over HTTP', function () {
  this.timeout(180_000)
  let folder: string
  let home: string
  let registry: Registry
  let service: Service
  const tokens: Record<string, string> = {}

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-plugins-http-'))
    home = join(folder, 'home')
    registry = await startRegistry()
    const npm = {
      npm_config_registry: registry.url,
      npm_config_cache: join(folder, 'cache'),
      npm_config_userconfig: join(folder, 'npmrc'),
      HOME: folder,
    }
    const plugins = [fileURLToPath(new URL('../support/stuck.ts', import.meta.url))]
    await configureFew(folder, { plugins, server: { auth: { api_key_env: 'SVC_API_KEY' } } }, NEEDED)
    // a server whose configuration only its flag names
    const cwd = await mkdtemp(join(folder, 'elsewhere-'))
    const args = ['--workers', '2', '--config', join(folder, 'svc.config.json')]
    service = await startService({ home, cwd, env: { ...AUTH, ...npm }, args })
    await service.seen(/"event":"worker_ready"/)
    for (const [name, scope] of Object.entries({ reader: 'read', root: 'read,chat,admin', other: 'read,chat' }))
      tokens[name] = (await runSvc(['tokens', 'create', '--name', name, '--scope', scope], { home, cwd: folder })).out.trim()
  })
  after(async () => {
    await service?.[Symbol.asyncDispose]()
    await registry?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  const send = (method: string, path: string, { body, as = 'root' }: { readonly body?: unknown; readonly as?: string } = {}) =>
    createClient(service.url, { keepAlive: false }).send({
      method,
      path,
      headers: { authorization: `Bearer ${tokens[as]}` },
      ...(body === undefined ? {} : { body }),
    })
  const get = async <T>(path: string, as?: string): Promise<T> => {
    const answer = await send('GET', path, as === undefined ? {} : { as })
    expect(answer.status, answer.text).to.equal(200)
    return answer.body as T
  }
  const plan = async (body: object): Promise<Plan> => {
    const answer = await send('POST', `${PLUGINS}/plans`, { body })
    expect(answer.status, answer.text).to.equal(201)
    return answer.body as Plan
  }
  const refused = async (body: unknown) => {
    const answer = await send('POST', `${PLUGINS}/plans`, { body })
    const { error_code, details } = problemOf(answer)
    return `${answer.status} ${error_code} ${details.code ?? details.reason ?? ''}`.trim()
  }
  const ended = async (id: string): Promise<JobRecord> => {
    for (const end = Date.now() + 90_000; Date.now() < end; await sleep(100)) {
      // a worker that is killed breaks the connection of a request
      const job = await get<JobRecord>(`/api/v1/jobs/${id}`).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ECONNRESET') throw error
      })
      if (job && job.state !== 'queued' && job.state !== 'running') return job
    }
    throw new Error('the job did not end')
  }
  const apply = async ({ hash }: Plan): Promise<JobRecord> => {
    const answer = await send('POST', `${PLUGINS}/plans/${hash}/apply`)
    expect(answer.status, answer.text).to.equal(202)
    return ended((answer.body as JobRecord).id)
  }
  const applied = async (body: object): Promise<JobRecord> => {
    const job = await apply(await plan(body))
    expect(job.state, JSON.stringify(job)).to.equal('completed')
    return job
  }
  /** Answers of both workers to a call of the tool. */
  const tides = async () => {
    const replies = new Map<string, string>()
    for (const end = Date.now() + 60_000; replies.size < 2; ) {
      if (Date.now() > end) throw new Error('only one worker answers')
      const client = createClient(service.url)
      const request = (method: string, path: string, body?: object) =>
        client.send({ method, path, headers: { authorization: `Bearer ${tokens.root}` }, ...(body ? { body } : {}) })
      const { text: pid } = await request('GET', '/pid')
      if (!replies.has(pid)) replies.set(pid, (await request('POST', '/api/v1/chat', { message: '/tool tides {}' })).text)
      client.close()
    }
    return [...replies.values()]
  }
  const publish = async (tides: Tides) => {
    const { file, pkg } = await tidesTarball(folder, tides)
    await registry.publish(file, pkg)
  }
  const shown = async (name: string) => get<Shown>(`${PLUGINS}/${encodeURIComponent(name)}`, 'reader')

  it('are listed with their state, the same by both workers, to callers with the scope read', async () => {
    const lists = await Promise.all(Array.from({ length: 10 }, () => get<{ plugins: Shown[] }>(PLUGINS, 'reader')))
    const names = lists.map(({ plugins }) => plugins.map(({ name, version, state }) => `${name} ${version} ${state}`))
    expect(new Set(names.map(name => JSON.stringify(name))).size).to.equal(1)
    const chat = lists[0]!.plugins.find(({ name }) => name === '@svc/plugin-chat')
    expect(chat).to.deep.include({ state: 'running', origin: { kind: 'svc' }, isolation: 'in-process', refusals: {} })
    const detail = await shown('@svc/plugin-rest')
    expect(detail).to.have.nested.property('added.routes').which.includes.members(['chat', 'status'])
    expect(await shown('@svc/plugin-chat')).to.deep.nested.include({ 'provides[0]': 'chat' })
  })

  it('are installed in two steps: a plan without running code, and a job that reloads the server', async () => {
    const permissions = { network: ['tides.example'], env: ['TIDES_KEY'] }
    const setup = "fetch('http://moon.example/').catch(() => {})"
    await publish({ version: '1.0.0', svc: { permissions }, setup, scripts: { postinstall: 'touch ran' } })
    const before = { workers: await workersOf(home), supervisor: service.child.pid }
    const made = await plan({ action: 'install', name: TIDES })
    expect(made)
      .to.have.nested.property('plugins[0]')
      .which.deep.includes({
        name: TIDES,
        version: '1.0.0',
        from_version: null,
        isolation: 'process',
        permissions,
        permission_change: { added: ['network tides.example', 'env TIDES_KEY'], removed: [] },
        access: [
          { text: 'read the variable TIDES_KEY', is_wide: false, is_new: true },
          { text: 'connect to tides.example', is_wide: false, is_new: true },
        ],
        install_scripts: ['postinstall'],
      })
    expect(made.hash).to.match(/^[0-9a-f]{64}$/)
    expect(await readLock(home)).to.deep.include({ plugins: [] })
    expect(existsSync(join(home, 'plugins', 'staging'))).to.equal(false)
    const { id, result } = await apply(made)
    const { entries } = (await send('GET', `/api/v1/jobs/${id}/log`)).body as { entries: readonly { message: string }[] }
    const messages = entries.map(({ message }) => message)
    expect([messages[0], messages.at(-1)]).to.deep.equal([`applying the plan: install ${TIDES}`, 'applied the plan'])
    expect(messages.length).to.be.above(2)
    expect(result).to.deep.include({
      hash: made.hash,
      reloaded: 1,
      was_in_effect: false,
      plugins: [{ name: TIDES, version: '1.0.0' }],
    })
    for (const reply of await tides()) expect(reply).to.contain('the tides of 1.0.0')
    expect(service.child.exitCode).to.equal(null)
    expect(service.child.pid).to.equal(before.supervisor)
    expect(await workersOf(home)).to.not.include.members(before.workers)
    const [locked] = (await readLock(home)).plugins
    expect(locked).to.deep.include({ name: TIDES, permissions, scripts: false, trusted: false })
    const { set } = await readLock(home)
    expect(existsSync(join(home, 'plugins', 'sets', set, 'node_modules', TIDES, 'ran'))).to.equal(false)
    const again = await send('POST', `${PLUGINS}/plans/${made.hash}/apply`)
    expect(again.body).to.deep.include({ state: 'completed' })
    const same = await plan({ action: 'install', name: TIDES })
    expect(same.is_empty).to.equal(true)
    expect((await apply(same)).result).to.deep.include({ reloaded: 0 })
  })

  it('count calls over all workers, those that have ended included', async () => {
    await tides()
    const counts = async () => {
      const all = await Promise.all(Array.from({ length: 10 }, () => shown(TIDES)))
      expect(new Set(all.map(({ accounting }) => accounting.calls)).size).to.equal(1)
      return all[0]!
    }
    const { accounting, origin, state } = await counts()
    expect(accounting.calls).to.be.at.least(4)
    expect([origin, state]).to.deep.equal([{ kind: 'registry', spec: TIDES }, 'running'])
    // each worker has been refused an access; a process reports it with its next beat
    for (const end = Date.now() + 30_000; ((await shown(TIDES)).refusals.network ?? 0) < 2; await sleep(200))
      if (Date.now() > end) throw new Error('the refusals are not counted')
    await applied({ action: 'disable', name: TIDES })
    expect(await shown(TIDES)).to.deep.include({ state: 'disabled' })
    for (const reply of await tides()) expect(reply).to.not.contain('the tides of')
    await applied({ action: 'enable', name: TIDES })
    expect((await counts()).accounting.calls).to.be.at.least(accounting.calls)
  })

  it('are published as events when the server has loaded a change', async () => {
    const seen: { readonly type: string; readonly data: object }[] = []
    let last: Record<string, string> = {}
    const open = () =>
      createClient(service.url, { keepAlive: false }).stream({
        method: 'GET',
        path: '/api/v1/events?types=plugin_*',
        headers: { authorization: `Bearer ${tokens.root}`, ...last },
      })
    let stream = await open()
    const followed = (async () => {
      while (!seen.some(({ type }) => type.endsWith('plugin_updated'))) {
        const event = await stream.next()
        if (event?.id !== undefined) last = { 'last-event-id': event.id }
        if (event?.event?.startsWith('svc.plugin')) seen.push(event.data as never)
        // the old worker leaves at the reload
        if (event === undefined) stream = await open()
      }
      await stream.leave()
    })()
    await publish({ version: '1.1.0', svc: { permissions: { network: ['tides.example', 'moon.example'] } } })
    await applied({ action: 'update', name: TIDES })
    await followed
    expect(seen.map(({ type }) => type.split('.').at(-1))).to.include.members(['plugin_plan_applied', 'plugin_updated'])
    expect(seen.find(({ type }) => type.endsWith('plugin_updated'))!.data).to.deep.equal({
      plugin: TIDES,
      version: '1.1.0',
      from_version: '1.0.0',
    })
  })

  it('refuse a plan whose package has changed meanwhile, with the difference, and change nothing', async () => {
    await publish({ version: '1.2.0', svc: { permissions: { network: ['tides.example', 'moon.example'] } } })
    const made = await plan({ action: 'update', name: TIDES })
    await publish({ version: '1.3.0', svc: { permissions: { network: ['tides.example', 'evil.example'] } } })
    const answer = await send('POST', `${PLUGINS}/plans/${made.hash}/apply`)
    expect([answer.status, problemOf(answer).error_code], answer.text).to.deep.equal([409, 'CONFLICT'])
    expect(problemOf(answer).details.changed!.join('\n'))
      .to.contain('version 1.2.0 is now 1.3.0')
      .and.contain('now asks for network evil.example')
      .and.contain('no longer asks for network moon.example')
    expect((await readLock(home)).plugins[0]).to.deep.include({ version: '1.1.0' })
  })

  it('refuse a plan after another change, also one by the command', async () => {
    const made = await plan({ action: 'install', name: TIDES, version: '1.2.0' })
    const { code, err } = await runSvc(['plugins', 'disable', TIDES], { home, cwd: folder, env: AUTH })
    expect(code, err).to.equal(0)
    const answer = await send('POST', `${PLUGINS}/plans/${made.hash}/apply`)
    expect([answer.status, problemOf(answer).details.changed], answer.text).to.deep.equal([
      409,
      ['the installed plugins have changed'],
    ])
    await applied({ action: 'enable', name: TIDES })
  })

  it('go back to the former plugins when the new workers cannot start', async () => {
    await publish({ version: '1.4.0', setup: "throw new Error('no tides today')" })
    const job = await apply(await plan({ action: 'update', name: TIDES }))
    expect([job.state, job.error!.code], JSON.stringify(job)).to.deep.equal(['failed', 'PLUGIN_CHANGE_ROLLED_BACK'])
    expect(job.error!.details).to.deep.include({ rolled_back: true })
    expect(JSON.stringify(job)).to.contain('no tides today').and.not.contain(home)
    for (const reply of await tides()) expect(reply).to.contain('the tides of 1.1.0')
    expect((await readLock(home)).plugins[0]).to.deep.include({ version: '1.1.0' })
  })

  it('survive the death of the worker that applies a plan, whose job another worker ends', async () => {
    const made = await plan({ action: 'install', name: TIDES, version: '1.2.0' })
    const answer = await send('POST', `${PLUGINS}/plans/${made.hash}/apply`)
    const note = join(home, 'plugins', 'changing.json')
    const isTried = () =>
      existsSync(join(home, 'svc-plugins.lock')) && /"before":/.test(readFileSync(join(home, 'svc-plugins.lock'), 'utf8'))
    for (const end = Date.now() + 60_000; !isTried(); await sleep(2))
      if (Date.now() > end) throw new Error('the change is never tried')
    process.kill((JSON.parse(readFileSync(note, 'utf8')) as { pid: number }).pid, 'SIGKILL')
    const job = await ended((answer.body as JobRecord).id)
    expect([job.state, job.error], JSON.stringify(job)).to.deep.equal(['completed', null])
    for (const reply of await tides()) expect(reply).to.contain('the tides of 1.2.0')
    expect((await readLock(home)).plugins[0]).to.deep.include({ version: '1.2.0' })
  })

  it('are planned one after the other: a second one is asked to wait', async () => {
    const bodies = ['1.1.0', '1.3.0'].map(version => ({ action: 'install', name: TIDES, version }))
    const answers = await Promise.all(bodies.map(body => send('POST', `${PLUGINS}/plans`, { body })))
    const [late] = answers.filter(({ status }) => status !== 201)
    expect(answers.map(({ status }) => status)).to.have.members([201, 503])
    expect(problemOf(late!).error).to.match(/^another command is changing the plugins/)
  })

  it('are uninstalled in the same way', async () => {
    const made = await plan({ action: 'uninstall', name: TIDES })
    expect(made.changes).to.deep.equal([{ name: TIDES, version: '1.2.0', to: 'removed' }])
    expect((await apply(made)).state).to.equal('completed')
    for (const reply of await tides()) expect(reply).to.not.contain('the tides of')
    expect((await send('GET', `${PLUGINS}/${TIDES}`)).status).to.equal(404)
    expect(await refused({ action: 'uninstall', name: TIDES })).to.equal('404 INVALID_VALUE PLUGIN_NOT_INSTALLED')
  })

  it('are installed from an archive in the same way', async () => {
    const archive = (await readFile(await tidesFile(folder, { version: '2.0.0' }))).toString('base64')
    const made = await plan({ action: 'install', archive })
    expect(made).to.deep.nested.include({ name: TIDES, 'plugins[0].version': '2.0.0', 'plugins[0].from_version': null })
    expect((await readLock(home)).plugins).to.deep.equal([])
    expect((await apply(made)).state).to.equal('completed')
    for (const reply of await tides()) expect(reply).to.contain('the tides of 2.0.0')
    expect((await shown(TIDES)).origin).to.deep.equal({ kind: 'tarball' })
    expect((await plan({ action: 'install', name: TIDES, archive })).is_empty).to.equal(true)
    // the registry has no such package
    expect(await refused({ action: 'update', name: TIDES })).to.equal('400 INVALID_VALUE was installed from a tarball')
    await applied({ action: 'uninstall', name: TIDES })
  })

  it('refuse archives that are none, that are others than they say, and where they do not belong', async () => {
    const archive = (await readFile(await tidesFile(folder, { version: '2.0.0' }))).toString('base64')
    const text = Buffer.from('no archive').toString('base64')
    expect(await refused({ action: 'install', archive: text })).to.equal('400 INVALID_VALUE PLUGIN_TARBALL_UNSAFE')
    expect(await refused({ action: 'install', name: 'svc-plugin-moon', archive })).to.match(
      /^400 INVALID_VALUE the archive contains/
    )
    expect(await refused({ action: 'install', version: '2.0.0', archive })).to.match(/^400 INVALID_VALUE cannot be used/)
    expect(await refused({ action: 'update', name: TIDES, archive })).to.match(/^400 INVALID_VALUE is only for install/)
    for (const given of ['', 'not base64!', '../../etc/passwd', 7, null, [archive]])
      expect(await refused({ action: 'install', archive: given }), String(given)).to.match(/^400 /)
    const large = await send('POST', `${PLUGINS}/plans`, { body: { action: 'install', archive: 'A'.repeat(23 * 1_048_576) } })
    expect(large.status).to.be.oneOf([400, 413])
    const unsafe = await send('POST', `${PLUGINS}/plans`, { body: { action: 'install', archive: text } })
    expect(unsafe.text).to.not.contain(home)
    expect((await readLock(home)).plugins).to.deep.equal([])
  })

  it('refuse hostile packages when they plan', async () => {
    const hostile = async (
      name: string,
      links: Readonly<Record<string, string>>,
      files: Readonly<Record<string, string>> = {}
    ) => {
      const pkg: PackageJson = { name, version: '1.0.0', type: 'module', main: 'index.js', svc: { api: 1, kind: 'tool' } }
      const own = await mkdtemp(join(folder, 'hostile-'))
      await writeFiles(own, { 'package/package.json': JSON.stringify(pkg), 'package/index.js': '', ...files })
      for (const [path, target] of Object.entries(links)) await symlink(target, join(own, path))
      const file = join(own, 'package.tgz')
      await create({ file, cwd: own, gzip: true, portable: true, preservePaths: true }, ['package', ...Object.keys(files)])
      await registry.publish(file, pkg)
    }
    await hostile('svc-plugin-linking', { 'package/passwd': '/etc/passwd' })
    expect(await refused({ action: 'install', name: 'svc-plugin-linking' })).to.equal('400 INVALID_VALUE PLUGIN_TARBALL_UNSAFE')
    await hostile('svc-plugin-outside', {}, { '../escaped.txt': 'out' })
    expect(await refused({ action: 'install', name: 'svc-plugin-outside' })).to.equal('400 INVALID_VALUE PLUGIN_TARBALL_UNSAFE')
    await publish({ name: 'svc-plugin-store', version: '1.0.0', svc: { kind: 'store', contributes: {} } })
    expect(await refused({ action: 'install', name: 'svc-plugin-store' })).to.equal('400 INVALID_VALUE PLUGIN_NEEDS_TRUST')
    await publish({ name: 'svc-plugin-far', version: '1.0.0', svc: { permissions: { env: ['<server.auth.api_key_env>'] } } })
    expect(await refused({ action: 'install', name: 'svc-plugin-none' })).to.equal('404 INVALID_VALUE PLUGIN_NOT_FOUND')
    expect((await readLock(home)).plugins).to.deep.equal([])
  })

  it('take only names of the registry, and valid bodies', async () => {
    await writeFile(join(folder, 'local.tgz'), '')
    const names = [
      './tides',
      '/etc',
      '~/tides',
      'local.tgz',
      'file:tides',
      'git+https://a.example/b',
      'https://a.example/b.tgz',
      '..',
    ]
    for (const name of [...names, 'a b', 'A', '', '@svc', 'x'.repeat(300), 7, null, ['x']])
      expect(await refused({ action: 'install', name }), String(name)).to.match(/^400 /)
    for (const version of ['file:..', 'git+ssh://x', '1 && touch x', '', 3, '../../x'])
      expect(await refused({ action: 'install', name: TIDES, version }), String(version)).to.match(/^400 /)
    for (const body of [
      {},
      { action: 'link', name: TIDES },
      { action: 'install' },
      { action: 'install', name: TIDES, trust: true },
      [],
    ])
      expect(await refused(body), JSON.stringify(body)).to.match(/^400 /)
    expect(await refused({ action: 'enable', name: 'svc-plugin-unknown' })).to.equal('404 INVALID_VALUE PLUGIN_NOT_INSTALLED')
    for (const hash of ['x', 'f'.repeat(64), '..%2f..', 'g'.repeat(2000)])
      expect((await send('POST', `${PLUGINS}/plans/${hash}/apply`)).status, hash).to.equal(404)
    for (const name of ['none', '%2e%2e', 'x'.repeat(1000), '@svc%2Fplugin-none'])
      expect((await send('GET', `${PLUGINS}/${name}`)).status, name).to.equal(404)
    expect((await send('GET', `${PLUGINS}?x=1`)).status).to.equal(400)
  })

  it('are changed only with the scope admin, also through the job', async () => {
    const body = { action: 'install', name: 'svc-plugin-far' }
    const made = await plan(body)
    // what the permission means with the configuration of the server
    expect(made.plugins[0]).to.deep.include({ new_permission_values: { env: ['SVC_API_KEY'] } })
    for (const as of ['reader', 'other']) {
      expect((await send('POST', `${PLUGINS}/plans`, { body, as })).status).to.equal(403)
      expect((await send('POST', `${PLUGINS}/plans/${made.hash}/apply`, { as })).status).to.equal(403)
    }
    // the kind is internal: not even an administrator can start it
    const job = { kind: 'plugins.apply', input: { hash: made.hash } }
    for (const as of ['reader', 'other', 'root'])
      expect((await send('POST', '/api/v1/jobs', { body: job, as })).status).to.equal(403)
  })
})
