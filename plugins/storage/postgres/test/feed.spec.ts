import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { outcomeOf, SPACE, until } from './load.ts'
import { ctx, newSchema, storeWith } from './support.ts'

const LATER = 30

/**
 * Transactions commit in another order than that of their ids. A feed that is read in the order of the ids, without the horizon of the
 * snapshot, passes the change of a transaction that commits later.
 */
describeWith('postgres', 'the feed of changes in PostgreSQL with several writers', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  before(async () => (postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))))
  after(() => stack.disposeAsync())

  const note = (key: string) => ({ op: 'put', collection: 'notes', key, value: key }) as const

  it('passes no change of a transaction that began first and commits last', async () => {
    const schema = newSchema()
    // its transaction waits for a lock
    await using slow = storeWith({ url: postgres.url, schema, statement_timeout_ms: 60_000 })
    await using quick = storeWith({ url: postgres.url, schema })
    for (const store of [slow, quick]) await store.open(SPACE, ctx)
    const heard: string[] = []
    const ending = new AbortController()
    const watching = (async () => {
      for await (const { key } of quick.watch('notes', { ...ctx, signal: ending.signal })) heard.push(key)
    })()
    // the watch has begun, and the writer has its row in the table of marks, which each of its commits changes
    for (let n = 0; heard.length === 0; n++) await slow.batch([note(`before ${n}`)], {}, ctx)
    const [mark] = await postgres.query(`SELECT id FROM "${schema}".writers`)
    const holding = postgres
      .query(`BEGIN; SELECT FROM "${schema}".writers WHERE id = '${String(mark!.id)}' FOR UPDATE; SELECT pg_sleep(30)`)
      .catch(() => {})
    const pidOf = async (condition: string) =>
      (await postgres.query(`SELECT pid FROM pg_stat_activity WHERE ${condition}`)).map(({ pid }) => Number(pid))[0]
    let holder: number | undefined
    await until(async () => (holder = await pidOf(`wait_event = 'PgSleep'`)) !== undefined)
    const first = outcomeOf(slow, [note('first')])
    await until(async () => (await pidOf(`wait_event_type = 'Lock' AND application_name LIKE '% write'`)) !== undefined)

    heard.length = 0
    const later = Array.from({ length: LATER }, (_, n) => `later ${n}`)
    for (const key of later) {
      await quick.batch([note(key)], {}, ctx)
      expect(await quick.get('notes', key, ctx)).to.include({ value: key })
    }
    expect(heard, 'while the first transaction is open').to.deep.equal([])
    await postgres.query('SELECT pg_terminate_backend($1)', [holder])
    await holding
    expect(await first).to.equal('done')
    await until(() => heard.length >= LATER + 1)
    expect(heard).to.deep.equal(['first', ...later])
    ending.abort()
    await watching
  }).timeout(60_000)
})
