import { deepEqual, match } from 'node:assert/strict'
import { test } from 'node:test'
import { pluginKit } from '@svc/testing'
import { missingEngine, startPostgres } from '@svc/testing/engines'

const missing = missingEngine('postgres')

test('passes the kit with a database', { skip: missing }, async t => {
  await using postgres = await startPostgres()
  const config = { tools: { pgquery: { server: `localhost:${postgres.port}`, database: 'postgres', user: 'svc', max_rows: 2 } } }
  const many = 'SELECT n, now() AS at FROM generate_series(1, 3) AS n'
  const cases = await pluginKit(new URL('..', import.meta.url), {
    config,
    env: { PGQUERY_PASSWORD: postgres.password },
    tools: {
      query_database: {
        good: [
          {
            args: { sql: 'SELECT $1::int + 1 AS n', values: [41] },
            expect: ({ structured }) => deepEqual(structured, { rows: [{ n: 42 }] }),
          },
          { args: { sql: many }, expect: ({ content: [part] }) => match(part.text, /^the first 2 of 3 rows:/) },
        ],
        bad: [
          { args: {} },
          { args: { sql: 'SELEC 1' }, message: /syntax error/ },
          { args: { sql: 'CREATE TABLE x (a int)' }, message: /read-only transaction/ },
          { args: { sql: 'COMMIT; CREATE TABLE x (a int)' }, message: /multiple commands/ },
        ],
        slow: { args: { sql: 'SELECT pg_sleep(60)' } },
        madeUp: true,
      },
    },
  })
  for (const testCase of cases) await t.test(testCase.title, testCase.run)
})
