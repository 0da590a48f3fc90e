import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, systemContext } from '@svc/core'
import type { Lease, SqlNotice, StoreOp } from '@svc/core/contracts'
import { type Postgres, postgresAnswer, startPostgres, startTcpProxy, type TcpProxy } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { createCheck } from '../src/check.ts'
import { audit, outcomeOf, put, SPACE, until, writeMany } from './load.ts'
import { ctx, newSchema, storeWith } from './support.ts'

/** A2, A3, A4 and, for a half-open line, A10 of the acceptance of clusters; the short ones are in `outages.spec.ts`. */
describeWith('postgres', 'the store in PostgreSQL', () => {
  let postgres: Postgres
  beforeEach(async () => (postgres = await startPostgres({ settings: { max_connections: 60 } })))
  afterEach(() => postgres[Symbol.asyncDispose]())

  it('tells each of 2,000 batches right when 200 answers to COMMIT are lost', async () => {
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    const schema = newSchema()
    await using store = storeWith({ url: proxy.url, schema })
    await using direct = storeWith({ url: postgres.url, schema })
    await store.open(SPACE, ctx)
    await direct.open(SPACE, ctx)
    let commits = 0
    proxy.cutAt(postgresAnswer('COMMIT', { times: 200, when: () => ++commits % 3 === 0 }))
    await using load = writeMany(store, 'c')
    await until(() => proxy.cuts >= 200 && load.outcomes.size >= 2_000, 150_000)
    await load.end()
    const counts = await audit(direct, load.outcomes)
    // the mark of the writer tells all of them
    expect(counts).to.deep.equal({ done: load.outcomes.size })
  }).timeout(240_000)

  it('ends no batch by a deadlock when several processes change the same keys in different orders', async () => {
    const schema = newSchema()
    await using stack = new AsyncDisposableStack()
    const stores = Array.from({ length: 3 }, () => stack.use(storeWith({ url: postgres.url, schema })))
    for (const store of stores) await store.open(SPACE, ctx)
    const keys = Array.from({ length: 12 }, (_, at) => `k${at}`)
    const batches = stores.flatMap((store, at) =>
      Array.from({ length: 40 }, (_, n) => {
        const mine = keys
          .toSorted((a, b) => ((Number(a.slice(1)) * 7 + n * 5 + at) % 13) - ((Number(b.slice(1)) * 7 + n * 5 + at) % 13))
          .slice(0, 6)
        const ops = mine.flatMap((key): StoreOp[] => [put(key, n), { op: 'append', log: 'lines', id: key, values: [n] }])
        return sleep(n % 7).then(() => outcomeOf(store, ops).then(outcome => ({ outcome, mine })))
      })
    )
    const done = await Promise.all(batches)
    expect(new Set(done.map(({ outcome }) => outcome))).to.deep.equal(new Set(['done']))
    for (const key of keys) {
      const times = done.filter(({ mine }) => mine.includes(key)).length
      expect((await stores[0]!.get('plain', key, ctx))?.version ?? 0).to.equal(times)
      expect((await stores[1]!.read('lines', key, { limit: 1000 }, ctx)).length).to.equal(times)
    }
  }).timeout(60_000)

  it('orders batches that depend on the absence of what the other one creates', async () => {
    const schema = newSchema()
    await using one = storeWith({ url: postgres.url, schema })
    await using two = storeWith({ url: postgres.url, schema })
    for (const store of [one, two]) await store.open(SPACE, ctx)
    const unless = (absent: string, key: string): StoreOp[] => [
      { op: 'delete', collection: 'plain', key: absent, ifVersion: 0 },
      put(key, 1),
    ]
    const rounds = Array.from({ length: 60 }, (_, n) => [`x${n}`, `y${n}`] as const)
    let conflicts = 0
    for (const [x, y] of rounds) {
      const outcomes = await Promise.all([outcomeOf(one, unless(y, x)), outcomeOf(two, unless(x, y))])
      expect(outcomes.toSorted()).to.deep.equal(['STORE_CONFLICT', 'done'])
      conflicts++
    }
    expect(conflicts).to.equal(60)
  }).timeout(60_000)

  it('rejects all waiting calls together when PostgreSQL is gone', async () => {
    await using store = storeWith({ url: postgres.url, schema: newSchema(), wait_ms: 500 })
    await store.open(SPACE, ctx)
    await postgres.stop()
    const began = performance.now()
    const outcomes = await Promise.all(Array.from({ length: 30 }, (_, n) => outcomeOf(store, [put(`k${n}`, n)])))
    expect(new Set(outcomes)).to.deep.equal(new Set(['STORE_UNAVAILABLE']))
    expect(performance.now() - began).to.be.below(5_000)
  })

  it('reports STORE_UNSURE when the database does not come back after a commit', async () => {
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    await using store = storeWith({ url: proxy.url, schema: newSchema(), wait_ms: 500 })
    await store.open(SPACE, ctx)
    proxy.cutAt({
      ...postgresAnswer('COMMIT'),
      matches: message => postgresAnswer('COMMIT').matches(message) && (proxy.refuse(), true),
    })
    expect(await outcomeOf(store, [put('a', 1)])).to.equal('STORE_UNSURE')
    expect(await outcomeOf(store, [put('b', 1)])).to.equal('STORE_UNAVAILABLE')
    proxy.heal()
    expect(await outcomeOf(store, [put('c', 1)])).to.equal('done')
    expect(await store.get('plain', 'b', ctx)).to.equal(undefined)
  }).timeout(120_000)

  it('loses nothing acknowledged and serves again within 3 s when PostgreSQL is killed ten times under load', async () => {
    const schema = newSchema()
    await using store = storeWith({ url: postgres.url, schema })
    await store.open(SPACE, ctx)
    const changes = store.watch('notes', ctx)[Symbol.asyncIterator]()
    let heard = 0
    void (async () => {
      for (let next = await changes.next(); !next.done; next = await changes.next()) heard = Number(next.value.value)
    })()
    for (let round = 1; round <= 10; round++) {
      await using load = writeMany(store, `r${round}`)
      await until(() => load.outcomes.size > 200)
      await postgres.kill()
      await sleep(200)
      await postgres.start()
      const began = performance.now()
      await until(async () => (await outcomeOf(store, [put('again', round)])) === 'done')
      expect(performance.now() - began).to.be.below(3_000)
      await load.end()
      await audit(store, load.outcomes)
      await until(
        async () => (await outcomeOf(store, [{ op: 'put', collection: 'notes', key: 'round', value: round }])) === 'done'
      )
      await until(() => heard === round)
    }
  }).timeout(300_000)

  it('gives no fence twice after a failover to a standby that has not followed', async () => {
    await using link = await startTcpProxy(postgres)
    await using standby = await postgres.standby({ via: link })
    const url = postgres.url.replace(/\/postgres$/, `,127.0.0.1:${standby.port}/postgres`)
    await using store = storeWith({ url, schema: newSchema() })
    await store.open(SPACE, ctx)
    const acquire = (holder: string) => store.acquire('l', { holder, ttlMs: 60_000, waitMs: 0 }, ctx)
    const known = await acquire('a/')
    await store.release(known, ctx)
    const [at] = await postgres.query('SELECT pg_current_wal_lsn()::text AS lsn')
    await until(
      async () => (await standby.query('SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn AS there', [at!.lsn]))[0]!.there === true
    )
    link.drop()
    // the standby never hears of these
    const lost: Lease[] = []
    for (let n = 0; n < 20; n++) {
      const lease = await acquire('a/')
      lost.push(lease)
      if (n < 19) await store.release(lease, ctx)
    }
    await postgres.kill()
    await standby.promote()
    let next: Lease | undefined
    await until(async () => (next = await acquire('b/').catch(() => undefined)) !== undefined)
    expect(next!.fence).to.be.above(lost.at(-1)!.fence)
    const stale = store.batch([put('a', 1)], { fence: lost.at(-1)! }, ctx).catch((error: unknown) => codeOf(error))
    expect(await stale).to.equal('STORE_FENCED')
    expect(await outcomeOf(store, [put('b', 1)])).to.equal('done')
  }).timeout(120_000)

  it('leaves a server that has become read-only (25006)', async () => {
    await using store = storeWith({ url: postgres.url, schema: newSchema(), wait_ms: 500 })
    await store.open(SPACE, ctx)
    await postgres.query('ALTER SYSTEM SET default_transaction_read_only = on')
    await postgres.query('SELECT pg_reload_conf()')
    await until(async () => (await outcomeOf(store, [put('a', 1)])) === 'STORE_UNAVAILABLE')
    const refused = await store.batch([put('b', 1)], {}, ctx).catch((error: { details?: unknown }) => error)
    expect(refused).to.have.deep.property('details', { retryable: true, reason: 'read_only' })
    await postgres.query('ALTER SYSTEM RESET default_transaction_read_only').catch(() => {})
    await postgres.query('BEGIN READ WRITE; COMMIT')
    await postgres.query('SELECT pg_reload_conf()')
    await until(async () => (await outcomeOf(store, [put('c', 1)])) === 'done')
  }).timeout(60_000)

  it('is unhealthy within 6 s of a partition, tells each batch right, and works afterwards', async () => {
    await using proxy = await startTcpProxy(postgres)
    const schema = newSchema()
    await using store = storeWith({ url: proxy.url, schema, statement_timeout_ms: 2000, connect_timeout_ms: 1000, wait_ms: 1000 })
    await using direct = storeWith({ url: postgres.url, schema })
    await store.open(SPACE, ctx)
    await direct.open(SPACE, ctx)
    const check = createCheck(store)
    expect((await check.probe(ctx)).status).to.equal('healthy')
    await using load = writeMany(store, 'p', 4)
    await until(() => load.outcomes.size > 50)
    proxy.drop()
    const began = performance.now()
    expect((await check.probe(ctx)).status).to.equal('unhealthy')
    expect(performance.now() - began).to.be.below(6_000)
    await sleep(8_000)
    proxy.cut()
    proxy.heal()
    await until(async () => (await check.probe(ctx)).status === 'healthy', 15_000)
    await load.end()
    await audit(direct, load.outcomes)
  }).timeout(90_000)

  it('wakes watchers within 15 s after a half-open connection', async () => {
    await using proxy = await startTcpProxy(postgres)
    const schema = newSchema()
    await using store = storeWith({ url: proxy.url, schema, statement_timeout_ms: 2000, connect_timeout_ms: 1000 })
    await using other = storeWith({ url: postgres.url, schema })
    await store.open(SPACE, ctx)
    await other.open(SPACE, ctx)
    const changes = store.watch('notes', ctx)[Symbol.asyncIterator]()
    let last = 0
    void (async () => {
      for (let next = await changes.next(); !next.done; next = await changes.next()) last = Number(next.value.value)
    })()
    let value = 0
    const write = () => other.batch([{ op: 'put', collection: 'notes', key: 'a', value: ++value }], {}, ctx)
    await until(async () => {
      await write()
      return last > 0
    })
    proxy.drop()
    await write()
    await sleep(500)
    proxy.cut() // while packets are dropped, no reset arrives
    proxy.heal()
    await until(() => last === value, 15_000)
    // silent, and never reset
    proxy.drop('to-client')
    await write()
    await sleep(6000)
    proxy.heal()
    await until(() => last === value, 15_000)
  }).timeout(60_000)

  it('replaces half-open connections soon, and leaves those alone that work on a slow statement', async () => {
    await using proxy = await startTcpProxy(postgres)
    const schema = newSchema()
    await using store = storeWith({ url: proxy.url, schema })
    await store.open(SPACE, ctx)
    await using other = storeWith({ url: postgres.url, schema })
    await other.open(SPACE, ctx)
    const slow = { text: 'SELECT pg_backend_pid() AS pid, pg_sleep(4.5)' }
    const [[first], [second]] = await Promise.all([
      store.run([slow], ctx),
      store.run([{ text: 'SELECT pg_backend_pid() AS pid' }], ctx),
    ])
    expect(first!.rows[0]!.pid, 'the same connection').to.equal(second!.rows[0]!.pid)
    proxy.freeze()
    const began = performance.now()
    const note = { op: 'put', collection: 'notes', key: 'a', value: 1 } as const
    // what was on its way is resolved by the mark of its batch; a busy machine finds out later than a batch waits
    const put = (): Promise<unknown> =>
      store.batch([note], {}, ctx).catch((error: unknown) => {
        if (codeOf(error) !== 'STORE_UNAVAILABLE' || performance.now() - began > 12_000) throw error
        return put()
      })
    await put()
    expect((await other.get('notes', 'a', ctx))?.value).to.equal(1)
    expect((await store.get('notes', 'a', ctx))?.value).to.equal(1)
    expect(performance.now() - began).to.be.below(12_000)
  }).timeout(60_000)

  it('finds half-open connections when the connection that looks for them has become half open, too', async () => {
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    await using store = storeWith({ url: proxy.url, schema: newSchema() })
    await store.open(SPACE, ctx)
    await store.run([{ text: 'SELECT 1' }], ctx)
    let frozen = 0
    const freezeAt = (message: Buffer): boolean => {
      if (frozen > 0 || !message.includes('pg_backend_pid')) return false
      frozen = performance.now()
      proxy.freeze()
      return false
    }
    // the first statement of the connection that asks whether PostgreSQL works on the slow one
    proxy.cutAt({ direction: 'to-server', matches: freezeAt })
    expect(await store.run([{ text: 'SELECT pg_sleep(5.5)' }], ctx).catch((error: unknown) => codeOf(error))).to.equal(
      'STORE_UNSURE'
    )
    expect(frozen).to.be.greaterThan(0)
    expect(performance.now() - frozen).to.be.below(9_000)
  }).timeout(60_000)

  for (const [what, breaks] of [
    ['its connections are half open', (proxy: TcpProxy) => proxy.freeze()],
    ['no packet arrives any more, of new connections either', (proxy: TcpProxy) => proxy.drop()],
  ] as const)
    it(`closes soon when ${what}`, async () => {
      await using proxy = await startTcpProxy(postgres)
      const store = storeWith({ url: proxy.url, schema: newSchema() })
      await store.open(SPACE, ctx)
      await Promise.all(Array.from({ length: 20 }, (_, at) => store.get('notes', `k${at}`, ctx)))
      const note = { op: 'put', collection: 'notes', key: 'a', value: 1 } as const
      await store.batch([note], {}, ctx)
      const watching = Array.fromAsync(store.watch('notes', ctx))
      const ending = new AbortController()
      const listening = Array.fromAsync(store.listen(['svc_a'], systemContext(ending.signal)))
      await store.get('notes', 'a', ctx)
      breaks(proxy)
      const asked = [store.batch([note], {}, ctx), store.get('notes', 'a', ctx), store.run([{ text: 'SELECT 1' }], ctx)]
      const began = performance.now()
      ending.abort()
      await Promise.all([store[Symbol.asyncDispose](), Promise.allSettled([...asked, watching, listening])])
      expect(performance.now() - began, 'the time that plugins have to close').to.be.below(10_000)
    }).timeout(60_000)

  it('runs statements for other plugins, and tells their listeners when notifications can be lost', async () => {
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    await using store = storeWith({ url: proxy.url, schema: newSchema() })
    const ending = new AbortController()
    const notices: SqlNotice[] = []
    const reading = (async () => {
      for await (const notice of store.listen(['svc_a', 'svc_b'], systemContext(ending.signal))) notices.push(notice)
    })()
    const send = (channel: string, payload: string) =>
      store.run([{ text: 'SELECT pg_notify($1, $2)', values: [channel, payload] }], ctx)
    const has = (payload: string) => until(() => notices.some(notice => notice.payload === payload))
    await until(() => notices.length > 0)
    expect(notices[0]).to.deep.equal({})
    await until(async () => {
      await send('svc_b', 'warm')
      return notices.some(notice => notice.payload === 'warm')
    })
    await send('svc_a', 'one')
    await has('one')
    const [numbers, pair] = await store.run(
      [{ text: 'SELECT n FROM unnest($1::bigint[]) AS u(n)', values: [[1, 2]] }, { text: `SELECT '{"a": 1}'::jsonb AS value` }],
      ctx
    )
    expect([numbers!.rows, numbers!.count, pair!.rows]).to.deep.equal([[{ n: 1 }, { n: 2 }], 2, [{ value: { a: 1 } }]])
    expect(codeOf(await store.run([{ text: 'SELECT nonsense' }], ctx).catch((error: unknown) => error))).to.equal(
      'STORE_UNAVAILABLE'
    )

    const before = notices.filter(notice => notice.channel === undefined).length
    const cut = store.run([{ text: 'SELECT pg_sleep(5)' }], ctx).catch((error: unknown) => codeOf(error))
    await sleep(200)
    proxy.cut()
    expect(await cut).to.equal('STORE_UNSURE')
    await until(() => notices.filter(notice => notice.channel === undefined).length > before)
    await until(async () => {
      await send('svc_a', 'two').catch(() => {})
      return notices.some(notice => notice.payload === 'two')
    })
    ending.abort()
    await reading
  }).timeout(60_000)
})
