import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '@svc/core'
import type { Lease } from '@svc/core/contracts'
import { type Postgres, postgresAnswer, startPostgres, startTcpProxy } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { audit, outcomeOf, put, SPACE, until, writeMany } from './load.ts'
import { ctx, newSchema, storeWith } from './support.ts'

const note = (value: number) => ({ op: 'put', collection: 'notes', key: 'a', value }) as const

/** The short tests of A2, A4 and A10 of the acceptance of clusters; `failures.spec.ts` has the long ones. */
describeWith('postgres', 'the store over outages of PostgreSQL', () => {
  let postgres: Postgres
  beforeEach(async () => (postgres = await startPostgres({ settings: { max_connections: 60 } })))
  afterEach(() => postgres[Symbol.asyncDispose]())

  it('tells each batch right when answers to COMMIT are lost', async () => {
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    const schema = newSchema()
    await using store = storeWith({ url: proxy.url, schema })
    await using direct = storeWith({ url: postgres.url, schema })
    await store.open(SPACE, ctx)
    await direct.open(SPACE, ctx)
    let commits = 0
    proxy.cutAt(postgresAnswer('COMMIT', { times: 20, when: () => ++commits % 3 === 0 }))
    await using load = writeMany(store, 'c')
    await until(() => proxy.cuts >= 20)
    await load.end()
    expect(await audit(direct, load.outcomes)).to.deep.equal({ done: load.outcomes.size })
  })

  it('follows a promoted standby: nothing acknowledged is lost, fences rise, watches end and can begin again', async () => {
    await using standby = await postgres.standby({ synchronous: true })
    const url = postgres.url.replace(/\/postgres$/, `,127.0.0.1:${standby.port}/postgres`)
    await using store = storeWith({ url, schema: newSchema() })
    await store.open(SPACE, ctx)
    const request = { holder: 'a/1', ttlMs: 60_000, waitMs: 0 }
    const before: Lease = await store.acquire('l', request, ctx)
    const watch = store.watch('notes', ctx)[Symbol.asyncIterator]()
    const ended = watch.next().catch((error: unknown) => codeOf(error))
    await using load = writeMany(store, 'f')
    await until(() => load.outcomes.size > 200)
    await postgres.kill()
    await standby.promote()
    const began = performance.now()
    await until(async () => (await outcomeOf(store, [put('again', 1)])) === 'done')
    expect(performance.now() - began).to.be.below(5_000)
    await load.end()
    await audit(store, load.outcomes)
    // a promoted standby can give the ids of transactions again, so the watcher reads everything anew
    expect(await ended).to.equal('STORE_UNAVAILABLE')
    const ending = new AbortController()
    const heard: string[] = []
    const watching = (async () => {
      for await (const { key } of store.watch('notes', { ...ctx, signal: ending.signal })) heard.push(key)
    })()
    for (let n = 0; heard.length === 0; n++)
      await store.batch([{ op: 'put', collection: 'notes', key: `after ${n}`, value: n }], {}, ctx)
    ending.abort()
    await watching
    await store.release(before, ctx)
    expect((await store.acquire('l', request, ctx)).fence).to.be.above(before.fence + 2 ** 31)
  }).timeout(120_000)

  it('wakes watchers after a line that was silent and was reset', async () => {
    await using proxy = await startTcpProxy(postgres)
    const schema = newSchema()
    await using store = storeWith({ url: proxy.url, schema, statement_timeout_ms: 2_000, connect_timeout_ms: 1_000 })
    await using other = storeWith({ url: postgres.url, schema })
    for (const opened of [store, other]) await opened.open(SPACE, ctx)
    const ending = new AbortController()
    let last = 0
    const watching = (async () => {
      for await (const { value } of store.watch('notes', { ...ctx, signal: ending.signal })) last = Number(value)
    })()
    let value = 0
    while (last === 0) await other.batch([note(++value)], {}, ctx)
    proxy.drop()
    await other.batch([note(++value)], {}, ctx)
    await sleep(200)
    expect(last).to.be.below(value)
    proxy.cut() // while packets are dropped, no reset arrives
    proxy.heal()
    await until(() => last === value, 15_000)
    ending.abort()
    await watching
  })
})
