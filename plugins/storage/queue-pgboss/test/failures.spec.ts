import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, type SvcError } from '@svc/core'
import type { NodeBus, RunClaim, RunQueue } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { RUN_ENTRIES, RUN_SPACE } from '@svc/storage-kit/run-leases'
import { type Postgres, startPostgres, startTcpProxy } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { becomes, ctx, newSchema, openQueue, openStore, openWorker } from './support.ts'

const upTo = (count: number) => Array.from({ length: count }, (_, at) => `r${at}`)
type Queue = Awaited<ReturnType<typeof openQueue>>

/** Takes runs until there are so many; tries again after an error, as the workflows plugin does. */
async function takeMany({ queue }: { readonly queue: RunQueue }, count: number, claims: RunClaim[] = []): Promise<RunClaim[]> {
  while (claims.length < count) {
    const stop = AbortSignal.timeout(90_000)
    try {
      for await (const claim of queue.take({ ...ctx, signal: stop })) {
        claims.push(claim)
        if (claims.length >= count) return claims
      }
      throw new Error(`only ${claims.length} of ${count} runs were given`)
    } catch (error) {
      if (codeOf(error)?.startsWith('STORE_') !== true) throw error
      await sleep(200)
    }
  }
  return claims
}

const put = ({ queue }: { readonly queue: RunQueue }, id: string) => queue.put({ id, due: Date.now() }, { claim: false }, ctx)
/** Calls again until PostgreSQL is back. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  for (const end = Date.now() + 60_000; ; await sleep(100))
    try {
      return await work()
    } catch (error) {
      if (codeOf(error)?.startsWith('STORE_') !== true || Date.now() > end) throw error
    }
}

/** A10 of the acceptance of clusters: a half-open line, and a queue that gives nothing. */
describeWith('postgres', 'the queue of runs in PostgreSQL when something fails', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  before(async () => (postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))))
  after(() => stack.disposeAsync())
  const section = () => ({ url: postgres.url, schema: newSchema() })

  it('loses no run over a crash of PostgreSQL, and goes on after it without a restart', async () => {
    await using own = await startPostgres({ settings: { max_connections: 60 } })
    const store = { url: own.url, schema: newSchema() }
    await using a = await openQueue('a', store)
    await using b = await openQueue('b', store)
    await Promise.all(upTo(30).map(id => put(a, id)))
    const held = await takeMany(a, 10)
    // a part of them before the crash, a part after it; the claims of an answer that was lost come only when their time is over
    const taking = takeMany(b, 20)
    await own.kill()
    const during = again(() => put(a, 'late'))
    await sleep(500)
    await own.start()
    await during
    const keep = async () => {
      for (const claim of held) await again(() => a.queue.keep(claim, ctx))
    }
    while ((await Promise.race([taking, sleep(5_000)])) === undefined) await keep()
    const others = await taking
    expect([...held, ...others].map(({ id }) => id).toSorted()).to.have.length(30)
    await keep()
    for (const claim of held) await a.queue.leave(claim, 'ended', ctx)
    for (const claim of others) await b.queue.leave(claim, { due: Date.now() }, ctx)
    const left = await takeMany(a, 21) // the others, and one that was not taken before
    const expected = [...upTo(30), 'late'].filter(id => !held.some(claim => claim.id === id)).toSorted()
    expect(left.map(({ id }) => id).toSorted()).to.deep.equal(expected)
  }).timeout(180_000)

  it('gives each run once although answers of PostgreSQL are lost', async () => {
    const schema = newSchema()
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    await using a = await openQueue('a', { url: proxy.url, schema })
    await using b = await openQueue('b', { url: postgres.url, schema })
    const cutting = (async () => {
      for (let times = 0; times < 8; times++) {
        await sleep(15)
        proxy.cut()
      }
    })()
    for (const id of upTo(40)) await again(() => put(a, id))
    await cutting
    const ids = (await takeMany(b, 40)).map(({ id }) => id)
    expect(ids.toSorted()).to.deep.equal(upTo(40).toSorted())
  }).timeout(120_000)

  it('takes runs again after a connection that swallows everything, and its health check says so meanwhile', async () => {
    const schema = newSchema()
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    const times = { statement_timeout_ms: 1_000, connect_timeout_ms: 1_000, wait_ms: 500 }
    await using a = await openQueue('a', { url: proxy.url, schema, ...times }, { lateMs: 1_500 })
    await using b = await openQueue('b', { url: postgres.url, schema })
    const taking = takeMany(a, 1)
    await sleep(200)
    expect(a.queue.health()).to.deep.equal({ status: 'healthy' })
    proxy.drop()
    await put(b, 'r')
    await becomes('the report', () => a.queue.health().status === 'unhealthy')
    expect(a.queue.health().reason).to.match(/^the queue of runs was not read for \d+ s$/)
    proxy.heal()
    const began = performance.now()
    expect((await taking).map(({ id }) => id)).to.deep.equal(['r'])
    expect(performance.now() - began).to.be.below(15_000)
    expect(a.queue.health()).to.deep.equal({ status: 'healthy' })
  }).timeout(120_000)

  it('gives runs within 15 s after connections became half open, with the times of a server', async () => {
    const schema = newSchema()
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    await using a = await openQueue('a', { url: proxy.url, schema })
    await using b = await openQueue('b', { url: postgres.url, schema })
    await put(b, 'first')
    for (const claim of await takeMany(a, 1)) await a.queue.leave(claim, 'ended', ctx)
    const taking = takeMany(a, 1)
    await sleep(200)
    proxy.freeze()
    const began = performance.now()
    await put(b, 'r')
    expect((await taking).map(({ id }) => id)).to.deep.equal(['r'])
    expect(performance.now() - began).to.be.below(15_000)
  }).timeout(120_000)

  it('is unhealthy when it gives no runs although some are due', async () => {
    await using a = await openQueue('a', section(), { claimMs: 1_200, lateMs: 3_000 })
    await put(a, 'r')
    await a.postgres.runApart({ text: refuseClaims(a.schema) }, ctx)
    const taking = takeMany(a, 1)
    await becomes('the report', () => a.queue.health().status === 'unhealthy')
    expect(a.queue.health().reason).to.match(/^a run is due for \d+ s, but the queue gives none$/)
    await a.postgres.runApart({ text: `DROP TRIGGER refuse ON ${a.schema}.job_common` }, ctx)
    await taking
    expect(a.queue.health()).to.deep.equal({ status: 'healthy' })
  }).timeout(120_000)

  it('is healthy while runs wait only for their group, or while this worker has no room', async () => {
    await using a = await openQueue('a', section(), { lateMs: 3_000 })
    const group = { name: 'g', limit: 1 }
    await a.queue.put({ id: 'first', due: Date.now(), group }, { claim: true }, ctx)
    await a.queue.put({ id: 'second', due: Date.now(), group }, { claim: false }, ctx)
    const ending = new AbortController()
    const claims = a.queue.take({ ...ctx, signal: ending.signal })
    const waiting = claims.next()
    await sleep(4_500)
    expect(a.queue.health()).to.deep.equal({ status: 'healthy' })
    await put(a, 'free')
    expect((await waiting).value).to.include({ id: 'free' })
    await put(a, 'more')
    await sleep(4_500)
    expect(a.queue.health(), 'it executes as many as it may').to.deep.equal({ status: 'healthy' })
    ending.abort()
    await claims.return()
  }).timeout(60_000)

  it('makes the runs of a dead worker due at once, and takes none from living ones', async () => {
    const store = section()
    await using a = await openQueue('a', store)
    await using b = await openQueue('b', store)
    await using c = await openQueue('c', store)
    const of = (queue: Queue, name: string) =>
      Promise.all(upTo(60).map(id => queue.queue.put({ id: name + id, due: Date.now() }, { claim: true }, ctx)))
    const [lost, living, own] = [await of(a, 'a'), await of(b, 'b'), await of(c, 'c')]
    await a.vanish()
    await c.store.releaseHolder('a/', ctx)
    await c.queue.gone('a/', ctx)
    const found = await takeMany(c, 60)
    expect(found.map(({ id }) => id).toSorted()).to.deep.equal(lost.map(claim => claim!.id).toSorted())
    for (const [queue, claims] of [
      [b, living],
      [c, own],
    ] as const)
      await Promise.all(claims.map(claim => queue.queue.keep(claim!, ctx)))
    await put(c, 'last')
    expect((await takeMany(b, 1)).map(({ id }) => id)).to.deep.equal(['last'])
  }).timeout(120_000)

  it('ignores a worker that was stopped and goes on when its runs are at others', async () => {
    const store = section()
    await using a = await openQueue('a', store, { claimMs: 1_000 })
    await using b = await openQueue('b', store, { claimMs: 1_000 })
    const stale = (await a.queue.put({ id: 'r', due: Date.now() }, { claim: true }, ctx))!
    a.queue.end()
    const [taken] = await takeMany(b, 1)
    expect(taken!.fence.fence).to.be.greaterThan(stale.fence.fence)
    for (const how of [{ due: null }, { due: Date.now() + 3_600_000 }, 'ended'] as const)
      expect(await a.queue.leave(stale, how, ctx).catch(codeOf)).to.be.oneOf([undefined, 'STORE_FENCED'])
    await b.queue.keep(taken!, ctx)
    await b.queue.leave(taken!, { due: Date.now() }, ctx)
    expect((await takeMany(b, 1))[0]!.id).to.equal('r')
  }).timeout(60_000)

  it('keeps a wake-up that arrives while a run is put to sleep', async () => {
    await using a = await openQueue('a', section())
    await using b = await openQueue('b', section())
    for (let times = 0; times < 15; times++) {
      const id = `r${times}`
      const claim = (await a.queue.put({ id, due: Date.now() }, { claim: true }, ctx))!
      await Promise.all([a.queue.leave(claim, { due: null }, ctx), sleep(times % 4).then(() => a.queue.wake(id, ctx))])
      const [woken] = await takeMany(a, 1)
      expect(woken!.id).to.equal(id)
      await a.queue.leave(woken!, 'ended', ctx)
    }
    expect(b.node).to.equal('b')
  }).timeout(60_000)

  it('wakes other workers through the bus, once for many runs', async () => {
    const store = section()
    const published: string[] = []
    await using b = await openQueue('b', store)
    const bus = {
      publish: async (topic: string) => {
        published.push(topic)
        b.queue.rung()
      },
    } as unknown as NodeBus
    await using a = await openQueue('a', store, { bus })
    const taking = takeMany(b, 100)
    await Promise.all(upTo(100).map(id => put(a, id)))
    await taking
    expect(published.length).to.be.within(1, 10)
    expect(new Set(published)).to.deep.equal(new Set(['run_queue']))
  }).timeout(60_000)

  it('closes soon while PostgreSQL is away', async () => {
    await using own = await startPostgres({ settings: { max_connections: 60 } })
    const worker = await openWorker('one', { url: own.url, schema: newSchema() })
    await worker.queue.put({ id: 'r', due: Date.now() }, { claim: true }, ctx)
    await own.kill()
    const began = performance.now()
    await worker.host.close()
    expect(performance.now() - began).to.be.below(15_000)
  }).timeout(90_000)

  it('creates its tables once when many workers start', async () => {
    const store = section()
    const workers = await Promise.all(upTo(6).map(name => openWorker(name, store)))
    const [first] = workers
    await first!.queue.put({ id: 'r', due: Date.now() }, { claim: false }, ctx)
    const taken = await takeMany(workers.at(-1)!, 1)
    expect(taken[0]!.id).to.equal('r')
    await Promise.all(workers.map(({ host }) => host.close()))
  }).timeout(120_000)

  it('creates no tables with store.migrate: false, and says what to do', async () => {
    const store = section()
    await (await openStore(store)).close()
    const refused = await openWorker('one', { ...store, migrate: false }).catch((error: unknown) => error)
    const { message, hint } = (refused as { problems: readonly SvcError[] }).problems[0]!
    expect(message).to.include('pg-boss is not installed')
    expect(hint).to.equal('Run `svc store init` as a user who may create the schema')
    await (await openQueue('two', store))[Symbol.asyncDispose]()
    const worker = await openWorker('one', { ...store, migrate: false })
    expect((await worker.queue.put({ id: 'r', due: Date.now() }, { claim: true }, ctx))?.id).to.equal('r')
    await worker.host.close()
  }).timeout(60_000)

  it('takes over the runs of a queue in the store', async () => {
    const store = section()
    await using a = await openQueue('a', store)
    await openSpace(a.store, RUN_SPACE, {}, ctx)
    const entries = {
      ready: { state: 'ready', due: 0 },
      asleep: { state: 'asleep', due: Number.MAX_SAFE_INTEGER },
      held: { state: 'held', due: 9e15 },
    }
    const ops = Object.entries(entries).map(([key, value]) => ({ op: 'put' as const, collection: RUN_ENTRIES, key, value }))
    await a.store.batch(ops, {}, ctx)
    const workers = await Promise.all([openWorker('one', store), openWorker('two', store)])
    const taken = await takeMany(workers[0]!, 2)
    expect(taken.map(({ id }) => id).toSorted()).to.deep.equal(['held', 'ready'])
    await workers[1]!.queue.wake('asleep', ctx)
    expect((await takeMany(workers[0]!, 1))[0]!.id).to.equal('asleep')
    expect((await a.store.range(RUN_ENTRIES, { limit: 10 }, ctx)).records).to.deep.equal([])
    await Promise.all(workers.map(({ host }) => host.close()))
  }).timeout(60_000)
})

/** PostgreSQL gives no job away: a trigger skips the change. */
const refuseClaims = (schema: string) => `
  CREATE FUNCTION ${schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
  CREATE TRIGGER refuse BEFORE UPDATE ON ${schema}.job_common FOR EACH ROW WHEN (NEW.state = 'active' AND OLD.state < 'active')
    EXECUTE FUNCTION ${schema}.refuse();`
