import { deepEqual, match } from 'node:assert/strict'

/** Samples for `svc plugins test`, with a database on this machine. The test beside this file starts one of its own. */
/** @type {import('@svc/testing').PluginSamples} */
const samples = {
  config: { tools: { pgquery: { server: '127.0.0.1:5432', database: 'postgres', user: 'postgres', max_rows: 2 } } },
  env: { PGQUERY_PASSWORD: 'secret' },
  tools: {
    query_database: {
      good: [
        {
          args: { sql: 'SELECT $1::int + 1 AS n', values: [41] },
          expect: ({ structured }) => deepEqual(structured, { rows: [{ n: 42 }] }),
        },
        {
          args: { sql: 'SELECT n, now() AS at FROM generate_series(1, 3) AS n' },
          expect: ({ content: [part] }) => match(part?.type === 'text' ? part.text : '', /^the first 2 of 3 rows:/),
        },
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
}

export default samples
