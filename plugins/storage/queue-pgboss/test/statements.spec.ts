import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { LOGGED, statementsFrom } from '../../../../test/support/statements.ts'
import { ctx, newSchema, openQueue } from './support.ts'

const RUNS = 200

describeWith('postgres', 'the statements of the queue in PostgreSQL', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  before(async () => (postgres = stack.use(await startPostgres({ settings: { max_connections: 60, ...LOGGED } }))))
  after(() => stack.disposeAsync())

  it('put runs that come at the same time into the queue together, claimed or not', async () => {
    await using own = await openQueue('a', { url: postgres.url, schema: newSchema() })
    for (const claim of [false, true]) {
      const { next } = await statementsFrom(postgres)
      const ids = Array.from({ length: RUNS }, (_, at) => `${claim}-${at}`)
      const claims = await Promise.all(ids.map(id => own.queue.put({ id, due: Date.now() }, { claim }, ctx)))
      expect(claims.filter(Boolean)).to.have.length(claim ? RUNS : 0)
      const { all } = await statementsFrom(postgres, next)
      const inserts = all.filter(({ text }) => /INSERT INTO \S*job/.test(text))
      expect(inserts.length, 'statements that insert').to.be.within(1, RUNS / 20)
    }
  }).timeout(60_000)
})
