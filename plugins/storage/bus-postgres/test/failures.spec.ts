import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '@svc/core'
import { type Postgres, startPostgres, startTcpProxy } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { becomes, ctx, LOST_MS, newSchema, openMember, readAll, restOf, type TestMember } from './support.ts'

const numbersOf = ({ seen }: TestMember) => seen.messages.map(({ message }) => (message as { at: number }).at)
/** A10 of the acceptance of clusters. */
const HALF_OPEN_MS = 15_000
/** A post waits 5 s for PostgreSQL. */
const SEND_MS = 7_000
const upTo = (count: number) => Array.from({ length: count }, (_, at) => at)

describeWith('postgres', 'the bus in PostgreSQL when something fails', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  before(async () => (postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))))
  after(() => stack.disposeAsync())

  it('delivers what was sent while the connection of a member was cut, in order and once', async () => {
    const schema = newSchema()
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    await using a = await openMember('a', { store: { url: postgres.url, schema }, lostMs: 60_000 })
    await using b = await openMember('b', { store: { url: proxy.url, schema }, lostMs: 60_000 })
    for (const { bus } of [a, b]) await bus.join(null, ctx)
    const text = 'x'.repeat(3_000) // some messages need the table, others come with the notification
    for (let at = 0; at < 60; at++) {
      if (at === 20) proxy.refuse()
      await a.bus.publish('news', { at, text: at % 3 === 0 ? text.repeat(4) : text }, ctx)
      if (at === 40) proxy.heal()
    }
    await becomes('60 messages', () => b.seen.messages.length >= 60)
    expect(numbersOf(b)).to.deep.equal(upTo(60))
    expect([a.seen.gone, a.seen.missed, b.seen.missed], 'nothing is lost').to.deep.equal([[], [], []])
  })

  it('notices connections that are half open, and has what was sent meanwhile within 15 s', async () => {
    const schema = newSchema()
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    // the times of a server: nothing is shorter
    await using a = await openMember('a', { store: { url: postgres.url, schema }, lostMs: 10_500 })
    await using b = await openMember('b', { store: { url: proxy.url, schema }, lostMs: 10_500 })
    for (const { bus } of [a, b]) await bus.join(null, ctx)
    await a.bus.publish('news', { at: 0 }, ctx)
    await becomes('the first message', () => b.seen.messages.length === 1)
    proxy.freeze()
    const began = performance.now()
    await a.bus.publish('news', { at: 1 }, ctx)
    const asked = b.bus.acquire('permit', 1, ctx).catch(codeOf)
    await becomes('the message', () => b.seen.messages.length === 2, HALF_OPEN_MS)
    expect(await b.bus.members(ctx)).to.have.length(2)
    expect(performance.now() - began).to.be.below(HALF_OPEN_MS)
    expect(await asked, 'it does not wait for its statement to time out').to.be.oneOf([true, 'STORE_UNSURE'])
    // listening works again, without a look at the table
    await a.bus.publish('news', { at: 2 }, ctx)
    await becomes('the next message', () => b.seen.messages.length === 3, 10_000)
    expect(numbersOf(b)).to.deep.equal(upTo(3))
  }).timeout(60_000)

  it('sends each message once although the answers of PostgreSQL are lost', async () => {
    const schema = newSchema()
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    await using a = await openMember('a', { store: { url: proxy.url, schema } })
    await using b = await openMember('b', { store: { url: postgres.url, schema } })
    for (const { bus } of [a, b]) await bus.join(null, ctx)
    for (let at = 0; at < 40; at++) {
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
    // permits: a number that is written twice is the same number
    const granted = await Promise.all(
      upTo(10).map(async at => {
        if (at === 3) proxy.cut()
        return a.bus.acquire('permits', 4, ctx)
      })
    )
    expect(granted.filter(Boolean)).to.have.length(4)
    expect(await b.bus.acquire('permits', 4, ctx)).to.equal(false)
  })

  it('keeps its members over a crash of PostgreSQL, which empties the tables, and their permits', async () => {
    await using own = await startPostgres({ settings: { max_connections: 60 } })
    const section = { store: { url: own.url, schema: newSchema() } }
    await using a = await openMember('a', section)
    await using b = await openMember('b', section)
    for (const { bus } of [a, b]) await bus.join({ roles: ['http'] }, ctx)
    expect([await a.bus.acquire('permits', 2, ctx), await b.bus.acquire('permits', 2, ctx)]).to.deep.equal([true, true])
    const open = await restOf(a.bus.call(b.worker, 'endless', 1, ctx))
    await own.kill()
    await own.start()
    expect(await open.rest, 'its parts are lost').to.equal('PEER_GONE')
    const rows = async () => own.query(`SELECT worker FROM ${section.store.schema}.bus_members ORDER BY worker`)
    await becomes('the return of both', async () => (await rows()).length === 2)
    await becomes('the end of that answer', () => b.seen.stopped === 1)
    await becomes('the reports of missed messages', () => [a, b].every(({ seen }) => seen.missed.includes(undefined)))
    expect((await a.bus.members(ctx)).map(({ worker }) => worker)).to.deep.equal([a.worker, b.worker])
    for (const member of [a, b]) {
      await member.bus.publish('news', { at: 0 }, ctx)
      expect(member.seen.gone, 'no member was lost').to.deep.equal([])
    }
    await becomes('the messages', () => [a, b].every(({ seen }) => seen.messages.length === 1))
    await becomes('the permits', async () => !(await a.bus.acquire('permits', 2, ctx)))
    await a.bus.release('permits', ctx)
    expect(await b.bus.acquire('permits', 2, ctx)).to.equal(true)
    expect(await readAll(a.bus.call(b.worker, 'echo', 1, ctx))).to.have.length(2)
  })

  it('reports a member that did not survive such a crash, and frees its leases', async () => {
    await using own = await startPostgres({ settings: { max_connections: 60 } })
    const section = { store: { url: own.url, schema: newSchema() } }
    await using a = await openMember('a', section)
    await using b = await openMember('b', section)
    for (const { bus } of [a, b]) await bus.join(null, ctx)
    await b.store.acquire('lease', { holder: `${b.worker}/run`, ttlMs: 120_000, waitMs: 0 }, ctx)
    await b.vanish()
    await own.kill()
    await own.start()
    await becomes('the report', () => a.seen.gone.length > 0)
    expect(a.seen.gone).to.deep.equal([{ worker: b.worker, node: b.node, holder: `${b.worker}/` }])
    await a.store.acquire('lease', { holder: `${a.worker}/run`, ttlMs: 1_000, waitMs: 0 }, ctx)
    expect((await a.bus.members(ctx)).map(({ worker }) => worker)).to.deep.equal([a.worker])
  })

  it('ends the calls to a member whose messages are lost, and continues with its next ones', async () => {
    const schema = newSchema()
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    await using a = await openMember('a', { store: { url: postgres.url, schema }, lostMs: 60_000 })
    await using b = await openMember('b', { store: { url: proxy.url, schema }, lostMs: 60_000 })
    for (const { bus } of [a, b]) await bus.join(null, ctx)
    await a.bus.publish('news', { at: 0 }, ctx)
    await becomes('the first message', () => b.seen.messages.length === 1)
    const open = await restOf(b.bus.call(a.worker, 'endless', 1, ctx))
    proxy.refuse()
    for (const at of [1, 2]) await a.bus.publish('news', { at }, ctx)
    await postgres.query(`DELETE FROM ${schema}.bus_posts WHERE receiver = '@test' AND sender = $1 AND n = 2`, [a.worker])
    proxy.heal()
    expect(await open.rest).to.equal('PEER_GONE')
    await becomes('the last message', () => b.seen.messages.length === 2)
    expect(numbersOf(b)).to.deep.equal([0, 2])
    await becomes('the end of the answer', () => a.seen.stopped === 1)
    expect(await readAll(b.bus.call(a.worker, 'echo', 1, ctx))).to.have.length(2)
  })

  it('ends a call whose last part was lost, although the member that answers stays one', async () => {
    const schema = newSchema()
    await using proxy = await startTcpProxy(postgres)
    await using a = await openMember('a', { store: { url: postgres.url, schema }, lostMs: 25_000 })
    await using b = await openMember('b', { store: { url: proxy.url, schema }, lostMs: 25_000 })
    for (const { bus } of [a, b]) await bus.join(null, ctx)
    const open = await restOf(a.bus.call(b.worker, 'endless', 1, ctx))
    proxy.refuse()
    // neither a part nor the end with its error could be sent
    await becomes('the end of that answer', () => b.seen.stopped === 1)
    await sleep(SEND_MS)
    proxy.heal()
    expect(await open.rest).to.equal('PEER_GONE')
    expect(a.seen.gone).to.deep.equal([])
    expect(await readAll(a.bus.call(b.worker, 'echo', 1, ctx))).to.have.length(2)
  }).timeout(90_000)

  it('frees the leases of a lost member before the others hear of it', async () => {
    const section = { store: { url: postgres.url, schema: newSchema() } }
    await using a = await openMember('a', section)
    await using b = await openMember('b', section)
    for (const { bus } of [a, b]) await bus.join(null, ctx)
    await b.store.acquire('lease', { holder: `${b.worker}/run`, ttlMs: 120_000, waitMs: 0 }, ctx)
    await b.vanish()
    await becomes('the report', () => a.seen.gone.length > 0)
    await a.store.acquire('lease', { holder: `${a.worker}/run`, ttlMs: 1_000, waitMs: 0 }, ctx)
  })

  it('lets a member that others took for lost join again', async () => {
    const section = { url: postgres.url, schema: newSchema() }
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    await using a = await openMember('a', { store: section })
    await using b = await openMember('b', { store: { ...section, url: proxy.url } })
    for (const { bus } of [a, b]) await bus.join({ roles: ['runs'] }, ctx)
    expect(await b.bus.acquire('permit', 1, ctx)).to.equal(true)
    proxy.refuse()
    await becomes('the report of the loss', () => a.seen.gone.length === 1)
    const before = a.seen.joined.length
    proxy.heal()
    await becomes('the return', () => a.seen.joined.length > before)
    expect(a.seen.joined.at(-1)).to.deep.equal({ worker: b.worker, node: b.node, facts: { roles: ['runs'] } })
    await b.bus.publish('news', { at: 0 }, ctx)
    await becomes('its message', () => a.seen.messages.length === 1)
    await becomes('its permit', async () => !(await a.bus.acquire('permit', 1, ctx)))
    await sleep(2 * LOST_MS)
    expect(await a.bus.members(ctx)).to.have.length(2)
  })

  it('joins again before its next renewal when a failover has emptied the tables, and is no member until then', async () => {
    const section = { url: postgres.url, schema: newSchema() }
    await using a = await openMember('a', { store: section, lostMs: 600_000 })
    await using b = await openMember('b', { store: section, lostMs: 600_000 })
    for (const { bus } of [a, b]) await bus.join(null, ctx)
    const empty = ['members', 'epoch', 'posts', 'permits'].map(table => `"${section.schema}".bus_${table}`).join(', ')
    await postgres.query(`TRUNCATE ${empty}; INSERT INTO "${section.schema}".bus_epoch(id) VALUES ('next')`)
    expect(
      (await b.bus.members(ctx)).map(({ worker }) => worker),
      'the other one is not lost yet'
    ).to.deep.equal([a.worker])
    const rows = () => postgres.query(`SELECT worker FROM "${section.schema}".bus_members ORDER BY worker`)
    await becomes('its return', async () => (await rows()).some(({ worker }) => worker === b.worker))
    await becomes('the return of both', async () => (await rows()).length === 2)
    expect([...a.seen.gone, ...b.seen.gone]).to.deep.equal([])
  })

  it('connects only the servers of one cluster in a database', async () => {
    const store = { url: postgres.url, schema: newSchema() }
    await using a = await openMember('a', { store })
    await using b = await openMember('b', { store })
    await using c = await openMember('c', { store, cluster: 'other' })
    for (const { bus } of [a, b, c]) await bus.join(null, ctx)
    await a.bus.publish('news', { at: 0 }, ctx)
    await becomes('the message', () => b.seen.messages.length === 1)
    expect(await c.bus.members(ctx)).to.have.length(1)
    expect([await a.bus.acquire('permit', 1, ctx), await c.bus.acquire('permit', 1, ctx)]).to.deep.equal([true, true])
    await c.vanish()
    await sleep(2 * LOST_MS)
    expect([c.seen.messages, a.seen.gone]).to.deep.equal([[], []])
  })

  it('deletes old messages, and those of members that have ended', async () => {
    const store = { url: postgres.url, schema: newSchema() }
    await using a = await openMember('a', { store })
    await a.bus.join(null, ctx)
    for (let at = 0; at < 5; at++) await a.bus.publish('news', { at }, ctx)
    const { pruneIn } = await import('../src/posts.ts')
    const count = async () => Number((await postgres.query(`SELECT count(*) AS n FROM ${store.schema}.bus_posts`))[0]!.n)
    await a.postgres.run([pruneIn(store.schema)], ctx)
    expect(await count()).to.equal(5)
    await postgres.query(`UPDATE ${store.schema}.bus_posts SET at = at - 61000`)
    await a.postgres.run([pruneIn(store.schema)], ctx)
    expect(await count()).to.equal(0)
  })
})
