import { setTimeout as sleep } from 'node:timers/promises'
import { Checks, Counts, Store, StoreAdmin, TextIndex } from '@svc/core/contracts'
import { makeCertificate, testHost } from '@svc/testing'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { ctx, newSchema, storeWith } from './support.ts'

const PLUGIN = new URL('..', import.meta.url)
const SPACE = { name: 'plugin', version: 1, collections: { notes: { indexes: { by_n: ['n'] } } }, logs: ['lines'] } as const

describeWith('postgres', 'the plugin store-postgres', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  before(async () => (postgres = stack.use(await startPostgres({ settings: { max_connections: 30 } }))))
  after(() => stack.disposeAsync())

  it('provides the store, its counts and its search, keeps data, and is healthy', async () => {
    const config = { store: { url: postgres.url, schema: newSchema() } }
    {
      await using host = await testHost([PLUGIN], { config })
      const store = host.service(Store)
      expect(await store.open(SPACE, ctx)).to.deep.equal({ version: 0 })
      await store.batch([{ op: 'put', collection: 'notes', key: 'a', value: { n: 1 } }], {}, ctx)
      expect((await host.service(Counts).count('k', [{ ms: 60_000, limit: 1 }], ctx)).counted).to.equal(true)
      expect(host.service(TextIndex)).to.have.property('search')
      expect((await host.service(StoreAdmin).contents(ctx)).spaces).to.deep.equal([{ name: 'plugin', version: 1 }])
      expect(await host.slot(Checks).get('database')!.probe(ctx)).to.deep.equal({
        status: 'healthy',
        detail: { kind: 'postgres', durable: true, scope: 'cluster', role: 'primary', clock_offset_ms: 0 },
      })
    }
    await using host = await testHost([PLUGIN], { config })
    const store = host.service(Store)
    expect(await store.open(SPACE, ctx)).to.deep.equal({ version: 1 })
    expect((await store.range('notes', { index: 'by_n', equals: [1], limit: 1 }, ctx)).records).to.have.length(1)
    expect((await host.service(Counts).count('k', [{ ms: 60_000, limit: 1 }], ctx)).counted).to.equal(false)
  })

  it('creates no tables with migrate: false', async () => {
    const schema = newSchema()
    await using store = storeWith({ url: postgres.url, schema, migrate: false })
    const failed = await store.start().catch((error: unknown) => error)
    expect(failed).to.include({ code: 'STORE_UNAVAILABLE', hint: 'Run `svc store init`' })
  })

  it('names host and port of the server that it cannot use, never the password', async () => {
    const url = new URL(postgres.url)
    const started = (changes: (url: URL) => void) => {
      const changed = new URL(postgres.url)
      changes(changed)
      return testHost([PLUGIN], { config: { store: { url: changed.href, wait_ms: 100 } } }).then(
        async host => host[Symbol.asyncDispose](),
        (error: Error & { problems?: readonly { code: string; message: string; hint?: string }[] }) => error.problems?.[0]
      )
    }
    const server = `127.0.0.1:${url.port}`
    expect(await started(item => (item.port = '1'))).to.include({
      code: 'POSTGRES_UNAVAILABLE',
      message: 'no PostgreSQL server answers (127.0.0.1:1)',
    })
    expect(await started(item => (item.password = 'wrong-8d1f'))).to.include({
      code: 'POSTGRES_UNAVAILABLE',
      message: `PostgreSQL rejected the password of the user "${postgres.user}" (${server})`,
      hint: 'Check the user, and the password in store.url',
    })
    expect(await started(item => (item.password = ''))).to.include({
      code: 'POSTGRES_UNAVAILABLE',
      message: `PostgreSQL wants a password, and none is configured (${server})`,
      hint: 'Set store.password_file, password_env or password_command',
    })
    expect(await started(item => (item.pathname = '/nothing'))).to.include({
      code: 'POSTGRES_UNAVAILABLE',
      message: `the database "nothing" does not exist (${server})`,
    })
    const two = postgres.url.replace(/@[^/]*/, '@127.0.0.1:1,127.0.0.1:2')
    await using store = storeWith({ url: two, schema: newSchema(), wait_ms: 100 })
    expect(await store.start().catch((error: Error) => error)).to.include({
      code: 'STORE_UNAVAILABLE',
      message: 'no PostgreSQL server answers (127.0.0.1:1, 127.0.0.1:2)',
    })
  })

  /** A13 of the acceptance of clusters. */
  it('tells the sum at the start when PostgreSQL has too few connections', async () => {
    await using small = await startPostgres({ settings: { max_connections: 13 } })
    const held = Array.from({ length: 7 }, () => small.query('SELECT pg_sleep(25)').catch(() => {}))
    const count = `SELECT count(*)::integer AS n FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()`
    while (Number((await small.query(count))[0]!.n) < held.length) await sleep(20)
    const failed = await testHost([PLUGIN], { config: { store: { url: small.url } } }).then(
      async host => host[Symbol.asyncDispose](),
      (error: Error) => error.message
    )
    expect(failed).to.include('1 × 6 for workers and commands of svc + 7 others = 13, but PostgreSQL allows 10')
    await small.stop()
    await Promise.all(held)
  })

  it('speaks TLS, and rejects a certificate of another authority', async () => {
    await using secure = await startPostgres({ certificate: makeCertificate() })
    const schema = newSchema()
    {
      await using store = storeWith({ url: `${secure.url}?sslmode=no-verify`, schema })
      await store.open(SPACE, ctx)
      const rows = await secure.query(`SELECT count(*)::integer AS n FROM pg_stat_ssl WHERE ssl`)
      expect(Number(rows[0]!.n)).to.be.above(0)
    }
    await using strict = storeWith({ url: `${secure.url}?sslmode=verify-full`, schema, wait_ms: 100 })
    expect(await strict.start().catch((error: unknown) => error)).to.include({ code: 'STORE_UNAVAILABLE' })
  })
})
