import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '@svc/core'
import { startRedis, startTcpProxy } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { becomes, ctx, LOST_MS, newCluster, openMember, openStore, readAll, restOf, type TestMember } from './support.ts'

const numbersOf = ({ seen }: TestMember) => seen.messages.map(({ message }) => (message as { at: number }).at)
const upTo = (count: number) => Array.from({ length: count }, (_, at) => at)

describeWith('redis', 'the bus in a Redis that fails', () => {
  /** Members of one cluster; each can have a URL of its own. */
  async function openMembers(...urls: readonly string[]) {
    const ends = new AsyncDisposableStack()
    const { store } = ends.use(await openStore())
    const cluster = newCluster()
    const members: TestMember[] = []
    for (const [at, url] of urls.entries()) {
      const member = ends.use(await openMember('abc'[at]!, { url, cluster, store }))
      await member.bus.join({ roles: ['http'] }, ctx)
      members.push(member)
    }
    const [a, b] = members as [TestMember, TestMember]
    await becomes('both', async () => a.seen.joined.length >= urls.length - 1)
    return { a, b, store, cluster, [Symbol.asyncDispose]: () => ends.disposeAsync() }
  }

  /** The members exchange messages and calls, and share a limit. */
  async function works({ a, b }: { readonly a: TestMember; readonly b: TestMember }): Promise<void> {
    await becomes('both members', async () => (await a.bus.members(ctx).catch(() => [])).length === 2)
    const before = a.seen.messages.length
    await becomes('a message', async () => {
      await b.bus.publish('news', { at: 0 }, ctx).catch(() => {})
      await sleep(20)
      return a.seen.messages.length > before
    })
    expect(await readAll(a.bus.call(b.worker, 'echo', 1, ctx))).to.have.length(2)
    expect(await readAll(b.bus.call(a.worker, 'echo', 1, ctx))).to.have.length(2)
  }

  it('keeps its members and their permits when Redis is flushed', async () => {
    await using redis = await startRedis()
    await using both = await openMembers(redis.url, redis.url)
    const { a, b } = both
    expect([await a.bus.acquire('permits', 2, ctx), await b.bus.acquire('permits', 2, ctx)]).to.deep.equal([true, true])
    await redis.flush()
    expect((await a.bus.members(ctx)).map(({ worker }) => worker)).to.deep.equal([a.worker, b.worker])
    await becomes('the permits', async () => !(await a.bus.acquire('permits', 2, ctx)))
    await works(both)
    await sleep(2 * LOST_MS)
    expect([a.seen.gone, b.seen.gone]).to.deep.equal([[], []])
    expect(await redis.command('HLEN', `svc:${both.cluster}:bus:members`)).to.equal(2)
    await a.bus.release('permits', ctx)
    expect([await b.bus.acquire('permits', 2, ctx), await a.bus.acquire('permits', 2, ctx)]).to.deep.equal([true, false])
  })

  it('keeps its members while Redis is away for longer than a lost member stays, and fails open calls', async () => {
    await using redis = await startRedis()
    await using both = await openMembers(redis.url, redis.url)
    const { a, b, store } = both
    await store.acquire('lease', { holder: `${b.worker}/run`, ttlMs: 120_000, waitMs: 0 }, ctx)
    const open = await restOf(a.bus.call(b.worker, 'endless', 1, ctx))
    await redis.kill()
    await sleep(2 * LOST_MS)
    for (const { bus } of [a, b]) expect((await bus.members(ctx)).map(({ worker }) => worker)).to.deep.equal([a.worker, b.worker])
    expect(await a.bus.acquire('permits', 1, ctx).catch(codeOf)).to.match(/^STORE_UN/)
    await redis.start()
    const back = performance.now()
    expect(await open.rest, 'its parts are lost').to.equal('PEER_GONE')
    await becomes('the end of that answer', () => b.seen.stopped === 1)
    await becomes('the reports of missed messages', () => [a, b].every(({ seen }) => seen.missed.includes(undefined)))
    await works(both)
    expect(performance.now() - back).to.be.below(5_000)
    await sleep(2 * LOST_MS)
    expect([a.seen.gone, b.seen.gone]).to.deep.equal([[], []])
    const busy = await store.acquire('lease', { holder: `${a.worker}/run`, ttlMs: 1_000, waitMs: 0 }, ctx).catch(codeOf)
    expect(busy, 'the lease of a living member').to.equal('LEASE_BUSY')
  })

  it('reports a member that did not survive such an outage, and frees its leases', async () => {
    await using redis = await startRedis()
    await using both = await openMembers(redis.url, redis.url)
    const { a, b, store } = both
    await store.acquire('lease', { holder: `${b.worker}/run`, ttlMs: 120_000, waitMs: 0 }, ctx)
    await b.vanish()
    await redis.kill()
    await redis.start()
    await becomes('the report', () => a.seen.gone.length > 0)
    expect(a.seen.gone).to.deep.equal([{ worker: b.worker, node: b.node, holder: `${b.worker}/` }])
    await store.acquire('lease', { holder: `${a.worker}/run`, ttlMs: 1_000, waitMs: 0 }, ctx)
    expect((await a.bus.members(ctx)).map(({ worker }) => worker)).to.deep.equal([a.worker])
  })

  it('keeps its members, messages and calls while the memory of Redis is full', async () => {
    await using redis = await startRedis({ maxMemory: '100mb' })
    await using both = await openMembers(redis.url, redis.url)
    const { a, b } = both
    expect(await b.bus.acquire('permit', 1, ctx)).to.equal(true)
    for (let at = 0; at < 30; at++) await redis.command('SET', `filler${at}`, 'x'.repeat(100_000))
    await redis.command('CONFIG', 'SET', 'maxmemory', '2mb')
    await sleep(3 * LOST_MS)
    await works(both)
    expect([a.seen.gone, b.seen.gone]).to.deep.equal([[], []])
    expect(await a.bus.acquire('other', 9, ctx).catch(codeOf), 'it cannot be written').to.equal('STORE_UNAVAILABLE')
    await b.vanish()
    await becomes('the report of a loss', () => a.seen.gone.length === 1)
    await redis.command('CONFIG', 'SET', 'maxmemory', '100mb')
    expect(await a.bus.acquire('permit', 1, ctx)).to.equal(true)
  })

  it('delivers each message once and in order although answers of Redis are lost', async () => {
    await using redis = await startRedis()
    await using proxy = await startTcpProxy(redis)
    await using both = await openMembers(proxy.url, redis.url)
    const { a, b } = both
    for (const at of upTo(40)) {
      const sent = a.bus.publish('news', { at }, ctx)
      if (at % 5 === 0) {
        await sleep(1)
        proxy.cut()
      }
      await sent
    }
    await becomes('40 messages', () => b.seen.messages.length >= 40)
    await sleep(100)
    expect(numbersOf(b)).to.deep.equal(upTo(40))
    const granted = await Promise.all(
      upTo(10).map(async at => {
        if (at === 3) proxy.cut()
        return a.bus.acquire('permits', 4, ctx)
      })
    )
    expect(granted.filter(Boolean)).to.have.length(4)
    expect(await b.bus.acquire('permits', 4, ctx)).to.equal(false)
  })

  it('lets a member that others took for lost join again, with its permits', async () => {
    await using redis = await startRedis()
    await using proxy = await startTcpProxy(redis)
    await using both = await openMembers(redis.url, proxy.url)
    const { a, b } = both
    expect(await b.bus.acquire('permit', 1, ctx)).to.equal(true)
    const open = await restOf(a.bus.call(b.worker, 'endless', 1, ctx))
    proxy.refuse()
    await becomes('the report of the loss', () => a.seen.gone.length === 1)
    expect(await open.rest).to.equal('PEER_GONE')
    const before = a.seen.joined.length
    proxy.heal()
    await becomes('the return', () => a.seen.joined.length > before)
    expect(a.seen.joined.at(-1)).to.deep.equal({ worker: b.worker, node: b.node, facts: { roles: ['http'] } })
    await works(both)
    await becomes('its permit', async () => !(await a.bus.acquire('permit', 1, ctx)))
    await sleep(2 * LOST_MS)
    expect(await a.bus.members(ctx)).to.have.length(2)
  })

  it('hears again within 15 s of a connection that is open but silent', async () => {
    await using redis = await startRedis()
    await using proxy = await startTcpProxy(redis)
    await using both = await openMembers(redis.url, proxy.url)
    proxy.drop()
    const began = performance.now()
    await becomes('the end of the connection', () =>
      both.b.redis.run('return 1', [], [], ctx).then(
        () => false,
        () => true
      )
    )
    expect(performance.now() - began).to.be.below(15_000)
    proxy.heal()
    await works(both)
  })

  it('connects only the servers of one cluster', async () => {
    await using redis = await startRedis()
    await using one = await openMembers(redis.url, redis.url)
    await using other = await openMembers(redis.url)
    const [a, c] = [one.a, other.a]
    await a.bus.publish('news', { at: 0 }, ctx)
    await becomes('the message', () => one.b.seen.messages.length === 1)
    expect(await c.bus.members(ctx)).to.have.length(1)
    expect([await a.bus.acquire('permit', 1, ctx), await c.bus.acquire('permit', 1, ctx)]).to.deep.equal([true, true])
    await c.vanish()
    await sleep(2 * LOST_MS)
    expect([c.seen.messages, a.seen.gone]).to.deep.equal([[], []])
  })

  it('ignores what another program sends or writes', async () => {
    await using redis = await startRedis()
    await using both = await openMembers(redis.url, redis.url)
    const channel = `svc:${both.cluster}:bus:to:${both.a.worker}`
    for (const text of [
      '',
      '{',
      'null',
      '7',
      '[]',
      '["x"]',
      '["x",1]',
      '["x",1,7]',
      '["x",2,{"call":null}]',
      '["x",3,{"call":{"id":1,"kind":"ask"}}]',
    ])
      await redis.command('PUBLISH', channel, text)
    await works(both)
  })
})
