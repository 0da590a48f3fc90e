import { countsKit, storeKit } from '@svc/testing'
import { type PgBouncer, type Postgres, startPgBouncer, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { ctx, newSchema, storesOf, storeWith } from './support.ts'

describeWith('postgres', 'the store in PostgreSQL', () => {
  describeWith('pgbouncer', 'behind PgBouncer in transaction mode', () => {
    const stack = new AsyncDisposableStack()
    let postgres: Postgres
    let pooler: PgBouncer
    before(async () => {
      postgres = stack.use(await startPostgres({ settings: { max_connections: 100 } }))
      pooler = stack.use(await startPgBouncer(postgres, { settings: { default_pool_size: 8 } }))
    })
    after(() => stack.disposeAsync())

    const open = storesOf(
      () => postgres,
      () => ({ url: pooler.url, directUrl: postgres.url })
    )
    for (const testCase of [...storeKit(open), ...countsKit(open)]) it(testCase.title, testCase.run)

    it('reports changes of another process without direct_url, by polling', async () => {
      const schema = newSchema()
      await using store = storeWith({ url: pooler.url, schema })
      await using other = storeWith({ url: pooler.url, schema })
      const space = { name: 'polled', version: 1, collections: { notes: { watched: true } } } as const
      await store.open(space, ctx)
      await other.open(space, ctx)
      const ended = new AbortController()
      const changes = store.watch('notes', { ...ctx, signal: ended.signal })[Symbol.asyncIterator]()
      const first = changes.next()
      let heard = false
      void first.then(() => (heard = true))
      for (let value = 1; !heard; value++) {
        await other.batch([{ op: 'put', collection: 'notes', key: 'a', value }], {}, ctx)
        await new Promise(resolve => setTimeout(resolve, 20))
      }
      expect((await first).value).to.include({ collection: 'notes', key: 'a' })
      ended.abort()
      await changes.return?.()
    })

    it('leaves nothing in the sessions of the pooler', async () => {
      await using store = storeWith({ url: pooler.url, direct_url: postgres.url, schema: newSchema() })
      await store.open({ name: 'clean', version: 1, collections: { notes: {} } }, ctx)
      await store.batch([{ op: 'put', collection: 'notes', key: 'a', value: 1 }], {}, ctx)
      const rows = await pooler.query(
        `SELECT current_setting('enable_seqscan') AS seqscan, current_setting('statement_timeout') AS timeout,
          (SELECT count(*)::integer FROM pg_prepared_statements) AS prepared`
      )
      expect(rows).to.deep.equal([{ seqscan: 'on', timeout: '0', prepared: 0 }])
    })
  })
})
