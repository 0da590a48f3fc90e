import { runQueueKit } from '@svc/testing'
import { type PgBouncer, type Postgres, startPgBouncer, startPostgres } from '@svc/testing/engines'
import { describeWith } from '../../../../test/support/needs.ts'
import { newSchema, openBrief, openTwo } from './support.ts'

const openAt = (section: () => object) => (how: { readonly brief: boolean }) => {
  const whole = { ...section(), schema: newSchema() }
  return how.brief ? openBrief(whole) : openTwo(whole)
}

describeWith('postgres', 'the queue of runs in PostgreSQL', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  before(async () => (postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))))
  after(() => stack.disposeAsync())

  for (const testCase of runQueueKit(openAt(() => ({ url: postgres.url })))) it(testCase.title, testCase.run)
})

describeWith('pgbouncer', 'the queue of runs in PostgreSQL behind a pooler', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let pooler: PgBouncer
  before(async () => {
    postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))
    pooler = stack.use(await startPgBouncer(postgres))
  })
  after(() => stack.disposeAsync())

  describe('with the URL of PostgreSQL itself', () => {
    const section = () => ({ url: pooler.url, direct_url: postgres.url })
    for (const testCase of runQueueKit(openAt(section))) it(testCase.title, testCase.run)
  })

  describe('with nothing else', () => {
    for (const testCase of runQueueKit(openAt(() => ({ url: pooler.url })))) it(testCase.title, testCase.run)
  })
})
