import { nodeBusKit, type NodeBusSubject } from '@svc/testing'
import { type PgBouncer, type Postgres, startPgBouncer, startPostgres } from '@svc/testing/engines'
import { describeWith } from '../../../../test/support/needs.ts'
import { newSchema, openMember } from './support.ts'

async function openThree(urls: readonly string[], more: object = {}): Promise<NodeBusSubject> {
  const schema = newSchema()
  const stack = new AsyncDisposableStack()
  const open = async (at: number) => stack.use(await openMember(at, { store: { url: urls[at % urls.length], schema, ...more } }))
  return { members: [await open(1), await open(2), await open(3)], close: () => stack.disposeAsync() }
}

describeWith('postgres', 'the bus in PostgreSQL', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  before(async () => (postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))))
  after(() => stack.disposeAsync())

  for (const testCase of nodeBusKit(() => openThree([postgres.url]))) it(testCase.title, testCase.run)
})

describeWith('pgbouncer', 'the bus in PostgreSQL behind a pooler that hides notifications', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let pooler: PgBouncer
  before(async () => {
    postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))
    pooler = stack.use(await startPgBouncer(postgres))
  })
  after(() => stack.disposeAsync())

  for (const testCase of nodeBusKit(() => openThree([pooler.url]))) it(testCase.title, testCase.run)
})
