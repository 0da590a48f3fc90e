import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '@svc/core'
import type { NodeBus, RunClaim, RunQueue } from '@svc/core/contracts'
import { RUN_ENTRIES } from '@svc/storage-kit/run-leases'
import { StoreQueue } from '@svc/storage-kit/store-queue'
import { type Redis, startRedis, startTcpProxy } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { becomes, ctx, openQueue, openShared, openWorker, type Shared } from './support.ts'

type Taker = { readonly queue: RunQueue }
const upTo = (count: number, name = 'r') => Array.from({ length: count }, (_, at) => `${name}${at}`)
const idsOf = (claims: readonly RunClaim[]) => claims.map(({ id }) => id).toSorted()
const put = ({ queue }: Taker, id: string, due = Date.now()) => queue.put({ id, due }, { claim: false }, ctx)

/** Takes runs until there are so many. */
async function takeMany({ queue }: Taker, count: number): Promise<RunClaim[]> {
  const claims: RunClaim[] = []
  for await (const claim of queue.take({ ...ctx, signal: AbortSignal.timeout(60_000) })) {
    claims.push(claim)
    if (claims.length >= count) return claims
  }
  throw new Error(`only ${claims.length} of ${count} runs were given`)
}

/** Takes and ends runs with both until there are so many; fails if a run is given twice. */
async function drain(takers: readonly Taker[], count: number): Promise<string[]> {
  const [ids, ending]: [string[], AbortController] = [[], new AbortController()]
  const signal = AbortSignal.any([ending.signal, AbortSignal.timeout(90_000)])
  const takeAll = async ({ queue }: Taker) => {
    for await (const claim of queue.take({ ...ctx, signal })) {
      ids.push(claim.id)
      await queue.leave(claim, 'ended', ctx)
      if (ids.length >= count) ending.abort()
    }
  }
  await Promise.all(takers.map(takeAll))
  return ids.toSorted()
}

/** What BullMQ has in Redis: ids of jobs that wait, and the number of delayed ones. */
async function inRedis(redis: Redis, { cluster }: Shared) {
  const key = (name: string) => `svc:${cluster}:queue:runs:${name}`
  const waiting = (await redis.command('LRANGE', key('wait'), 0, -1)) as string[]
  const active = (await redis.command('LRANGE', key('active'), 0, -1)) as string[]
  return { waiting: waiting.toSorted(), active: active.toSorted(), delayed: await redis.command('ZCARD', key('delayed')) }
}

/** A12 of the acceptance of clusters: Redis killed, flushed, full, evicting. */
describeWith('redis', 'the queue of runs in Redis when Redis fails', () => {
  it('gives runs from the store while Redis is down, loses none, and gives none twice', async () => {
    await using redis = await startRedis()
    await using shared = await openShared({ url: redis.url })
    await using a = await openQueue('a', shared)
    await using b = await openQueue('b', shared)
    await Promise.all(upTo(40).map(id => put(a, id)))
    const held = await takeMany(a, 10)
    await redis.kill()
    await put(a, 'late')
    const others = await takeMany(b, 15)
    expect((await b.queue.put({ id: 'own', due: Date.now() }, { claim: true }, ctx))?.id).to.equal('own')
    await redis.start()
    for (const claim of held) await a.queue.leave(claim, 'ended', ctx)
    const rest = await takeMany(b, 16)
    expect(idsOf([...held, ...others, ...rest])).to.deep.equal([...upTo(40), 'late'].toSorted())
    await becomes('the return to Redis', async () => {
      await put(b, 'again')
      return b.queue.health().status === 'healthy' && (await inRedis(redis, shared)).waiting.includes('again')
    })
  }).timeout(120_000)

  it('puts back into Redis what a flush has deleted, also runs that are due later and those that wait for a wake-up', async () => {
    await using redis = await startRedis()
    await using shared = await openShared({ url: redis.url })
    await using a = await openQueue('a', shared)
    await using b = await openQueue('b', shared)
    await Promise.all(upTo(300).map(id => put(a, id)))
    const sleeper = (await a.queue.put({ id: 'sleeper', due: Date.now() }, { claim: true }, ctx))!
    await a.queue.leave(sleeper, { due: null }, ctx)
    await put(a, 'later', Date.now() + 8_000)
    expect((await inRedis(redis, shared)).waiting).to.deep.equal(upTo(300).toSorted())
    expect((await inRedis(redis, shared)).delayed).to.equal(1)
    await redis.flush()
    await redis.command('SCRIPT', 'FLUSH')
    // without a worker that takes runs
    await becomes('the return of the jobs', async () => (await inRedis(redis, shared)).waiting.length >= 100)
    await b.queue.wake('sleeper', ctx)
    expect(await drain([a, b], 302)).to.deep.equal([...upTo(300), 'later', 'sleeper'].toSorted())
    expect((await shared.store.range(RUN_ENTRIES, { limit: 1 }, ctx)).records).to.deep.equal([])
  }).timeout(120_000)

  it('keeps runs in the store while the memory of Redis is full, and uses Redis again when there is some', async () => {
    await using redis = await startRedis({ maxMemory: '100mb' })
    await using shared = await openShared({ url: redis.url })
    await using a = await openQueue('a', shared)
    await using b = await openQueue('b', shared)
    await Promise.all(upTo(20, 'before').map(id => put(a, id)))
    for (let at = 0; at < 30; at++) await redis.command('SET', `filler${at}`, 'x'.repeat(100_000))
    await redis.command('CONFIG', 'SET', 'maxmemory', '2mb')
    await Promise.all(upTo(20, 'during').map(id => put(a, id)))
    expect(a.queue.health()).to.deep.equal({
      status: 'degraded',
      reason: 'Redis fails: the workers find their runs in the store',
    })
    expect(await drain([a, b], 40)).to.deep.equal([...upTo(20, 'before'), ...upTo(20, 'during')].toSorted())
    await redis.command('CONFIG', 'SET', 'maxmemory', '100mb')
    await Promise.all(upTo(20, 'after').map(id => put(a, id)))
    expect((await inRedis(redis, shared)).waiting.filter(id => id.startsWith('after'))).to.have.length(20)
    expect(await drain([b], 20)).to.deep.equal(upTo(20, 'after').toSorted())
    expect(a.queue.health()).to.deep.equal({ status: 'healthy' })
  }).timeout(120_000)

  it('loses no run while Redis evicts keys of the queue', async () => {
    await using redis = await startRedis({ maxMemory: '4mb', maxMemoryPolicy: 'allkeys-random' })
    await using shared = await openShared({ url: redis.url })
    await using a = await openQueue('a', shared)
    await using b = await openQueue('b', shared)
    const evicting = (async () => {
      for (let at = 0; at < 150; at++) await redis.command('SET', `filler${at}`, 'x'.repeat(100_000))
    })()
    const draining = drain([a, b], 300)
    for (const id of upTo(300)) await put(a, id)
    await evicting
    expect(await draining).to.deep.equal(upTo(300).toSorted())
    const stats = String(await redis.command('INFO', 'stats'))
    expect(Number(/evicted_keys:(\d+)/.exec(stats)?.[1])).to.be.above(100)
  }).timeout(180_000)

  it('goes on from the store when the connection swallows everything, and from Redis when it is back', async () => {
    await using redis = await startRedis()
    await using proxy = await startTcpProxy(redis)
    const times = { connect_timeout_ms: 1_000, command_timeout_ms: 1_000, wait_ms: 200 }
    await using shared = await openShared({ url: redis.url })
    await using a = await openQueue('a', { ...shared, redis: { url: proxy.url, ...times } })
    await using b = await openQueue('b', shared)
    const taking = takeMany(a, 1)
    await sleep(200) // it has asked Redis, and waits for its answer
    proxy.drop()
    const began = performance.now()
    await put(b, 'r')
    expect(idsOf(await taking)).to.deep.equal(['r'])
    expect(performance.now() - began).to.be.below(15_000)
    proxy.heal()
    await becomes('the return to Redis', async () => {
      await a.queue.wake('unknown', ctx)
      await put(a, 'next')
      return a.queue.health().status === 'healthy' && (await inRedis(redis, shared)).waiting.includes('next')
    })
  }).timeout(120_000)
})

describeWith('redis', 'the queue of runs in Redis and its workers', () => {
  const stack = new AsyncDisposableStack()
  let redis: Redis
  before(async () => (redis = stack.use(await startRedis())))
  after(() => stack.disposeAsync())
  const open = () => openShared({ url: redis.url })

  it('makes the runs of a dead worker due at once, and takes none from living ones', async () => {
    await using shared = await open()
    await using a = await openQueue('a', shared)
    await using b = await openQueue('b', shared)
    await using c = await openQueue('c', shared)
    // half of them were claimed when they were added, the others were given by Redis
    const own = async (taker: typeof a) => {
      const claims = upTo(30, taker.node).map(id => taker.queue.put({ id, due: Date.now() }, { claim: true }, ctx))
      for (const id of upTo(30, `${taker.node}-given`)) await put(taker, id)
      return [...(await Promise.all(claims)), ...(await takeMany(taker, 30))] as RunClaim[]
    }
    const [lost, living, mine] = [await own(a), await own(b), await own(c)]
    expect((await inRedis(redis, shared)).active).to.have.length(90)
    await a.vanish()
    await shared.store.releaseHolder('a/', ctx)
    const began = performance.now()
    await c.queue.gone('a/', ctx)
    expect(idsOf(await takeMany(c, 60))).to.deep.equal(idsOf(lost))
    expect(performance.now() - began, 'long before a claim expires').to.be.below(10_000)
    for (const [{ queue }, claims] of [
      [b, living],
      [c, mine],
    ] as const)
      await Promise.all(claims.map(claim => queue.keep(claim, ctx)))
    await put(c, 'last')
    expect(idsOf(await takeMany(b, 1))).to.deep.equal(['last'])
  }).timeout(120_000)

  it('gives a run whose worker was lost between the job and the claim', async () => {
    await using shared = await open()
    await using a = await openQueue('a', shared, { claimMs: 1_000 })
    await using b = await openQueue('b', shared)
    await put(a, 'r')
    expect((await a.jobs.next())?.data).to.deep.equal({ id: 'r' })
    await a.vanish()
    expect(idsOf(await takeMany(b, 1))).to.deep.equal(['r'])
  }).timeout(60_000)

  it('ignores a worker that was stopped and goes on when its runs are at others', async () => {
    await using shared = await open()
    await using a = await openQueue('a', shared, { claimMs: 1_000 })
    await using b = await openQueue('b', shared, { claimMs: 1_000 })
    await put(a, 'r')
    const [stale] = await takeMany(a, 1)
    a.queue.end()
    const [taken] = await takeMany(b, 1)
    expect(taken!.fence.fence).to.be.greaterThan(stale!.fence.fence)
    for (const how of [{ due: null }, { due: Date.now() + 3_600_000 }, 'ended'] as const)
      expect(await a.queue.leave(stale!, how, ctx).catch(codeOf)).to.be.oneOf([undefined, 'STORE_FENCED'])
    await b.queue.keep(taken!, ctx)
    await b.queue.leave(taken!, { due: Date.now() }, ctx)
    expect((await takeMany(b, 1))[0]!.id).to.equal('r')
  }).timeout(60_000)

  it('keeps a wake-up that arrives while a run is put to sleep', async () => {
    await using shared = await open()
    await using a = await openQueue('a', shared)
    await using b = await openQueue('b', shared)
    const began = performance.now()
    for (const [times, claim] of [...Array(30).keys()].map(at => [at, at % 2 === 0] as const)) {
      const id = `r${times}`
      const own = (await a.queue.put({ id, due: Date.now() }, { claim }, ctx)) ?? (await takeMany(a, 1))[0]!
      const due = times % 3 === 0 ? null : Date.now() + 3_600_000
      await Promise.all([a.queue.leave(own, { due }, ctx), sleep(times % 4).then(() => b.queue.wake(id, ctx))])
      const [woken] = await takeMany(a, 1)
      expect(woken!.id).to.equal(id)
      await a.queue.leave(woken!, 'ended', ctx)
    }
    expect(performance.now() - began, 'none waits for the repair').to.be.below(30_000)
  }).timeout(90_000)

  it('wakes other workers through the bus, once for many runs', async () => {
    await using shared = await open()
    const published: string[] = []
    await using b = await openQueue('b', shared)
    const bus = {
      publish: async (topic: string) => {
        published.push(topic)
        b.queue.rung()
      },
    } as unknown as NodeBus
    await using a = await openQueue('a', shared, { bus })
    const taking = takeMany(b, 100)
    await Promise.all(upTo(100).map(id => put(a, id)))
    await taking
    expect(published.length).to.be.within(1, 10)
    expect(new Set(published)).to.deep.equal(new Set(['run_queue']))
  }).timeout(60_000)

  it('takes over the runs of a queue in the store, and leaves them to it again', async () => {
    await using shared = await open()
    await using a = await openQueue('a', shared)
    const simple = new StoreQueue({ store: shared.store, holder: 's/', node: 's', lasting: ctx })
    for (const id of ['one', 'two', 'three']) await put({ queue: simple }, id)
    const asleep = (await simple.put({ id: 'asleep', due: Date.now() }, { claim: true }, ctx))!
    await simple.leave(asleep, { due: null }, ctx)
    const taken = await takeMany(a, 3)
    expect(idsOf(taken)).to.deep.equal(['one', 'three', 'two'])
    await a.queue.wake('asleep', ctx)
    expect(idsOf(await takeMany(a, 1))).to.deep.equal(['asleep'])
    await a.queue.leave(taken[0]!, { due: Date.now() }, ctx)
    expect(idsOf(await takeMany({ queue: simple }, 1))).to.deep.equal([taken[0]!.id])
  }).timeout(60_000)

  it('starts and works without Redis, and closes soon', async () => {
    await using own = await startRedis()
    await own.kill()
    await using shared = await openShared({ url: own.url })
    const worker = await openWorker('one', shared)
    await put(worker, 'r')
    expect(idsOf(await takeMany(worker, 1))).to.deep.equal(['r'])
    const began = performance.now()
    await worker.host.close()
    expect(performance.now() - began).to.be.below(15_000)
  }).timeout(90_000)
})
