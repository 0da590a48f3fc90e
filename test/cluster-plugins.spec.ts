import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf, startHost, systemContext } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { newestRevision, packLock, readLock, REVISION_SPACE, writeRevision } from '@svc/plugin-manager/set'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { create } from 'tar'
import { type Client, createClient } from './support/client.ts'
import { runSvc } from './support/command.ts'
import { describeWith, itWith } from './support/needs.ts'
import { newHome, type Service, startService } from './support/service.ts'
import { configureFew, TIDES, type Tides, tidesFile } from './support/tides.ts'
import { until, wait } from './support/wait.ts'

const SCHEMA = 'plugin_nodes'
/** The nodes take a change over within this time on a free machine; the limit is for a busy one. */
const SOON_MS = 90_000

interface Shown {
  readonly nodes: readonly {
    readonly is_self: boolean
    readonly plugin_set: {
      readonly revision: number
      readonly failed: { readonly revision: number; readonly code: string } | null
    } | null
    readonly differences: readonly { readonly what: string; readonly there: string }[]
  }[]
}

/** The life of one plugin on the nodes of one cluster: each test goes on where the last one has ended. */
describeWith('postgres', 'a plugin that is installed on one node of a cluster', function () {
  this.timeout(240_000)
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let folder: string
  let env: Readonly<Record<string, string>>
  let [one, two, three]: [Service, Service, Service] = [undefined!, undefined!, undefined!]

  before(async () => {
    postgres = stack.use(await startPostgres({ settings: { max_connections: 120 } }))
    folder = await mkdtemp(join(tmpdir(), 'svc-cluster-plugins-'))
    stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
    env = {
      npm_config_registry: 'http://127.0.0.1:1',
      npm_config_cache: join(folder, 'cache'),
      npm_config_userconfig: join(folder, 'npmrc'),
      HOME: folder,
    }
    one = await startNode()
    two = await startNode()
  })
  after(() => stack.disposeAsync())

  async function startNode(home?: string): Promise<Service> {
    const own = home ?? (await newHome())
    if (home === undefined) {
      stack.defer(() => rm(own, { recursive: true, force: true, maxRetries: 10 }))
      const store = { url: postgres.url, schema: SCHEMA }
      await configureFew(own, { store }, ['admin-api', 'jobs', 'event-feed'])
    }
    return stack.use(await startService({ home: own, env }))
  }
  const plugins = ({ home }: { readonly home: string }, ...args: string[]) => runSvc(['plugins', ...args], { home, env })
  const clientOf = ({ url }: Service): Client => createClient(url, { keepAlive: false })
  const tarball = (version: string, more: Partial<Tides> = {}) => tidesFile(folder, { version, ...more })
  const tides = async (node: Service) => (await clientOf(node).post('/api/v1/chat', { message: '/tool tides {}' })).text
  /** Packs the set of the first node. Commands hold the home meanwhile; this does not, so the server can sweep the folder in between. */
  const pack = async (lock: Awaited<ReturnType<typeof readLock>>, file: string): Promise<void> => {
    for (;;)
      try {
        await rm(file, { force: true })
        await packLock(one.home, lock, file, {})
        return
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') throw error
      }
  }
  /** The log can come later than the first answer. */
  const writes = (node: Service, text: string) =>
    within(
      async () => node.output(),
      output => output.includes(text)
    )
  const tells = (node: Service, version: string) =>
    within(
      () => tides(node),
      text => text.includes(`the tides of ${version}`)
    )
  const shownBy = async (node: Service) => (await clientOf(node).get('/api/v1/nodes')).body as Shown
  const setOf = async (node: Service) => (await shownBy(node)).nodes.find(({ is_self: isSelf }) => isSelf)!.plugin_set!
  const newest = () => withStore(async (store, ctx) => (await newestRevision({ store, cluster: 'svc' }, ctx))!.revision)

  async function withStore<T>(work: (store: Store, ctx: ReturnType<typeof systemContext>) => Promise<T>): Promise<T> {
    await using host = await startHost({
      plugins: ['@svc/plugin-store-postgres'],
      from: [import.meta.url],
      config: { store: { url: postgres.url, schema: SCHEMA } },
    })
    const ctx = systemContext(AbortSignal.timeout(60_000))
    await host.service(Store).open(REVISION_SPACE, ctx)
    return await work(host.service(Store), ctx)
  }

  /** The set of the first node as the newest revision. */
  async function writeGoodSet(): Promise<void> {
    const file = join(folder, 'good.tgz')
    await pack(await readLock(one.home), file)
    const facts = { plugins: [], by: 'the test', at: 'now', version: '0.0.0', platform: `${process.platform}-${process.arch}` }
    const base = await newest()
    await withStore((store, ctx) => writeRevision({ store, cluster: 'svc' }, { base, file, facts }, ctx))
    for (const node of [one, two, three])
      await within(
        () => setOf(node),
        set => set.revision === base + 1
      )
  }

  it('reaches the other, with the trust of the person who installed it', async () => {
    const file = await tarball('1.0.0')
    const refused = await plugins(one, 'install', file, '--yes', '--isolation', 'in-process')
    expect([refused.code, refused.err]).to.satisfy(([code, err]: [number, string]) => code === 1 && err.includes('NEEDS_TRUST'))
    const { code, out, err } = await plugins(one, 'install', file, '--yes', '--isolation', 'in-process', '--trust')
    expect(code, err).to.equal(0)
    expect(out).to.include('the nodes of the cluster take over revision 1')
    for (const node of [one, two]) await tells(node, '1.0.0')
    const [first, second] = await Promise.all([readLock(one.home), readLock(two.home)])
    expect(second.plugins).to.deep.equal(first.plugins)
    expect(second.plugins[0]).to.include({ trusted: true, isolation: 'in-process' })
    const { nodes } = await within(
      () => shownBy(one),
      shown => shown.nodes.every(node => node.plugin_set?.revision === 1)
    )
    expect(nodes).to.have.length(2)
    const listed = await plugins(two, 'list')
    expect(listed.out, listed.err).to.include('revision 1')
    expect(JSON.parse((await plugins(two, 'list', '--json')).out)).to.deep.include({ revision: 1 })
    expect((await runSvc(['nodes'], { home: two.home })).out.match(/ r1 /g)).to.have.length(2)
  })

  it('is updated over HTTP by a plan of one node that another one applies', async () => {
    const archive = (await readFile(await tarball('1.1.0'))).toString('base64')
    const planned = await clientOf(two).post('/api/v1/plugins/plans', { action: 'install', archive })
    expect(planned.status, planned.text).to.be.below(300)
    const { hash } = planned.body as { hash: string }
    const applied = await clientOf(one).post(`/api/v1/plugins/plans/${hash}/apply`, {})
    expect(applied.status, applied.text).to.be.below(300)
    for (const node of [one, two]) await tells(node, '1.1.0')
    for (const node of [one, two])
      await within(
        () => setOf(node),
        ({ revision }) => revision === 2
      )
  })

  it('stays as it is everywhere if the node that changes it cannot start with the change', async () => {
    const broken = await tarball('2.0.0', { setup: "throw new Error('no moon tonight')" })
    const { code, err } = await plugins(one, 'install', broken, '--yes')
    expect(code).to.equal(1)
    expect(err).to.include('no moon tonight')
    expect(await newest()).to.equal(2)
    for (const node of [one, two]) await tells(node, '1.1.0')
  })

  it('is changed by one of two commands that run at the same time; the other one changes nothing', async () => {
    const files = [await tarball('3.0.0'), await tarball('3.1.0')]
    const done = await Promise.all([one, two].map((node, at) => plugins(node, 'install', files[at]!, '--yes')))
    const good = done.filter(({ code }) => code === 0)
    const bad = done.filter(({ code }) => code !== 0)
    expect(good, done.map(({ err }) => err).join('\n')).to.have.length(1)
    expect(bad[0]!.err)
      .to.match(/PLUGIN_SET_(CONFLICT|BEHIND|BUSY)/)
      .and.include('svc nodes')
    const version = done[0]!.code === 0 ? '3.0.0' : '3.1.0'
    for (const node of [one, two]) await tells(node, version)
    expect(await newest()).to.equal(3)
  })

  it('reaches a node that joins with an empty home before it serves', async () => {
    const version = (await readLock(one.home)).plugins[0]!.version
    three = await startNode()
    expect(await tides(three)).to.include(`the tides of ${version}`)
    await writes(three, 'took over revision 3')
  })

  it('reaches a node that is killed while it takes it over, when it starts again', async () => {
    const { home } = three
    const [transfer, staging] = [join(home, 'plugins', 'transfer'), join(home, 'plugins', 'staging')]
    for (const version of ['4.0.0', '4.1.0', '4.2.0']) {
      const installing = plugins(one, 'install', await tarball(version), '--yes')
      // in the middle: it has begun to write
      const limit = performance.now() + SOON_MS
      const hasBegun = () => existsSync(staging) || existsSync(transfer)
      await rm(transfer, { recursive: true, force: true })
      while (!hasBegun() && performance.now() < limit) await wait()
      await three.kill()
      const { code, err } = await installing
      expect(code, err).to.equal(0)
      three = await startNode(home)
      await tells(three, version)
    }
    expect((await readLock(home)).plugins).to.deep.equal((await readLock(one.home)).plugins)
  })

  it('is refused if the bytes in the store were changed, and the former one stays in effect', async () => {
    await three.stop()
    await plugins(one, 'install', await tarball('5.0.0'), '--yes')
    for (const node of [one, two]) await tells(node, '5.0.0')
    const [{ chunks, revision }] = await withStore(
      async (store, ctx) => [(await newestRevision({ store, cluster: 'svc' }, ctx))!] as const
    )
    await withStore(async (store, ctx) => {
      const { value } = (await store.get('plugin_chunks', chunks[0]!, ctx))!
      const bytes = Buffer.from((value as { bytes: string }).bytes, 'base64')
      bytes[100]! ^= 1
      const op = { op: 'put', collection: 'plugin_chunks', key: chunks[0]!, value: { bytes: bytes.toString('base64') } } as const
      await store.batch([op], {}, ctx)
    })
    three = await startNode(three.home)
    await tells(three, '4.2.0')
    await writes(three, 'PLUGIN_SET_DAMAGED')
    const failed = await within(
      () => setOf(three),
      set => set.failed !== null
    )
    expect([failed.revision, failed.failed]).to.deep.include(revision - 1)
    expect(failed.failed!.code).to.equal('PLUGIN_SET_DAMAGED')
    const { nodes } = await shownBy(one)
    const there = nodes.flatMap(node => node.differences).find(({ what }) => what === 'plugin_set')!.there
    expect(there).to.include('PLUGIN_SET_DAMAGED')
    const late = await plugins(three, 'disable', TIDES)
    expect([late.code, late.err]).to.satisfy(([code, err]: [number, string]) => code === 1 && err.includes('PLUGIN_SET_BEHIND'))
    // as the hint says
    for (const word of ['disable', 'enable']) {
      const { code, err } = await plugins(one, word, TIDES)
      expect(code, err).to.equal(0)
    }
    for (const node of [one, two, three]) await tells(node, '5.0.0')
  })

  it('is refused if its packages leave their folder, ask for more than was accepted, or are built for another platform', async () => {
    const base = await newest()
    const facts = { plugins: [], by: 'an attacker', at: 'now', version: '0.0.0', platform: `${process.platform}-${process.arch}` }
    const write = (file: string, from: number) =>
      withStore((store, ctx) => writeRevision({ store, cluster: 'svc' }, { base: from, file, facts }, ctx))
    const refused = ({ revision }: { readonly revision: number }, code: string) =>
      within(
        () => setOf(two),
        ({ failed }) => failed?.revision === revision && failed.code === code
      )
    const lock = await readLock(one.home)
    const evil = join(folder, 'evil')
    await mkdir(join(evil, 'set'), { recursive: true })
    await writeFile(join(evil, 'bundle.json'), '{}')
    await writeFile(join(evil, 'set', 'x'), 'x')
    const file = join(folder, 'evil.tgz')
    for (const path of ['set/../../../../escaped', '/tmp/svc-escaped', 'set/node_modules/../../../escaped']) {
      const onWriteEntry = (entry: { path: string }) => void (entry.path = entry.path === 'set/x' ? path : entry.path)
      await create({ cwd: evil, file, gzip: true, preservePaths: true, onWriteEntry }, ['bundle.json', 'set/x'])
      await refused(await write(file, await newest()), 'BUNDLE_INVALID')
    }
    const more = lock.plugins.map(plugin => ({ ...plugin, permissions: { ...plugin.permissions, env: ['SECRET_KEY'] } }))
    await pack({ ...lock, plugins: more }, file)
    await refused(await write(file, await newest()), 'PLUGIN_CONSENT_DIFFERS')
    const built = lock.plugins.map(plugin => ({ ...plugin, scripts: true }))
    await pack({ ...lock, plugins: built }, file)
    const foreign = await withStore(async (store, ctx) =>
      writeRevision({ store, cluster: 'svc' }, { base: await newest(), file, facts: { ...facts, platform: 'plan9-mips' } }, ctx)
    )
    await refused(foreign, 'PLUGIN_PLATFORM_DIFFERS')
    for (const node of [one, two, three]) await tells(node, '5.0.0')
    expect(await newest()).to.equal(base + 5)
    expect(existsSync('/tmp/svc-escaped')).to.equal(false)
  })

  it('goes back to its former version on all nodes, by the command and over HTTP', async () => {
    // a good set first: the newest revision is one that no node accepts
    await writeGoodSet()
    const all = [one, two, three]
    const { code, err } = await plugins(one, 'install', await tarball('7.0.0'), '--yes')
    expect(code, err).to.equal(0)
    for (const node of all) await tells(node, '7.0.0')
    const rolledBack = await plugins(two, 'rollback', TIDES, '--yes')
    expect(rolledBack.code, rolledBack.err).to.equal(0)
    expect(rolledBack.out).to.include(`rolled back to ${TIDES} 5.0.0`).and.include('take over revision')
    for (const node of all) await tells(node, '5.0.0')
    const shown = await within(
      async () => (await clientOf(one).get(`/api/v1/plugins/${TIDES}`)).body as { installed: { former_version: string | null } },
      ({ installed }) => installed.former_version === '7.0.0'
    )
    expect(shown.installed.former_version).to.equal('7.0.0')
    const planned = await clientOf(one).post('/api/v1/plugins/plans', { action: 'rollback', name: TIDES })
    expect(planned.status, planned.text).to.equal(201)
    const { hash, plugins: changes } = planned.body as { hash: string; plugins: { version: string; from_version: string }[] }
    expect(changes[0]).to.include({ version: '7.0.0', from_version: '5.0.0' })
    const applied = await clientOf(three).post(`/api/v1/plugins/plans/${hash}/apply`, {})
    expect(applied.status, applied.text).to.equal(202)
    for (const node of all) await tells(node, '7.0.0')
    const missing = await clientOf(one).post('/api/v1/plugins/plans', { action: 'rollback', name: 'svc-plugin-none' })
    expect(missing.body).to.deep.include({ error_code: 'INVALID_VALUE' })
    expect((missing.body as { details: object }).details).to.include({ field: 'name', reason: 'not found' })
  })

  it('is removed from all nodes', async () => {
    const from = await newest()
    const { code, err } = await plugins(two, 'uninstall', TIDES)
    expect(code, err).to.equal(0)
    for (const node of [one, two, three]) {
      await within(
        () => setOf(node),
        set => set.revision === from + 1
      )
      expect((await readLock(node.home)).plugins).to.deep.equal([])
      expect(await tides(node)).to.not.include('the tides of')
    }
  })

  it('is not installed while the store is away, and nothing changes', async () => {
    const before = await readLock(one.home)
    await postgres.kill()
    const { code, err } = await plugins(one, 'install', await tarball('6.0.0'), '--yes')
    expect([code, err]).to.satisfy(
      ([exit, text]: [number, string]) => exit === 1 && text.includes('no PostgreSQL server answers')
    )
    expect(await readLock(one.home)).to.deep.equal(before)
    await postgres.start()
    for (const node of [one, two, three])
      await within(
        async () => (await clientOf(node).get('/health/ready')).status,
        status => status === 200
      )
  })

  itWith('bubblewrap', it)('runs isolated on each node, with the accepted permissions', async () => {
    const { code, err } = await plugins(three, 'install', await tarball('6.0.0'), '--yes')
    expect(code, err).to.equal(0)
    for (const node of [one, two, three]) await tells(node, '6.0.0')
    expect((await readLock(one.home)).plugins[0]).to.include({ isolation: 'process', trusted: false })
  })
})

/** Repeats a question until its answer is right, or the time is over. */
async function within<T>(ask: () => Promise<T>, right: (answer: T) => boolean): Promise<T> {
  const limit = performance.now() + SOON_MS
  let last: unknown
  return until(async () => {
    const answer = await ask()
    last = answer
    if (!right(answer) && performance.now() > limit) throw new Error(`still ${JSON.stringify(last)?.slice(0, 800)}`)
    return answer
  }, right)
}
