import { countsKit, storeKit, textIndexKit } from '@svc/testing'
import { type Postgres, type PostgresStandby, startPostgres } from '@svc/testing/engines'
import { describeWith } from '../../../../test/support/needs.ts'
import { storesOf } from './support.ts'

/** A1 of the acceptance of clusters; `pooler.spec.ts` is its part behind PgBouncer, and the kit has the clock that is ahead. */
describeWith('postgres', 'the store in PostgreSQL', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let standby: PostgresStandby | undefined
  before(async () => {
    postgres = stack.use(await startPostgres({ settings: { max_connections: 100 } }))
    standby = stack.use(await postgres.standby({ synchronous: true }))
    // a commit is answered when the standby shows it
    await postgres.query(`ALTER SYSTEM SET synchronous_commit = 'remote_apply'`)
    await postgres.query('SELECT pg_reload_conf()')
  })
  after(() => stack.disposeAsync())

  const open = storesOf(
    () => postgres,
    () => ({ cuts: true, standbyUrl: async () => standby!.url })
  )
  for (const testCase of [...storeKit(open), ...countsKit(open), ...textIndexKit(open)]) it(testCase.title, testCase.run)
})
