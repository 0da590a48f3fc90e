import { test } from 'node:test'
import { pluginKit } from '@svc/testing'
import { missingEngine, startPostgres } from '@svc/testing/engines'
import samples from './samples.js'

test('passes the kit with a database', { skip: missingEngine('postgres') }, async t => {
  await using postgres = await startPostgres()
  const cases = await pluginKit(new URL('..', import.meta.url), {
    ...samples,
    config: { tools: { pgquery: { server: `localhost:${postgres.port}`, database: 'postgres', user: 'svc', max_rows: 2 } } },
    env: { PGQUERY_PASSWORD: postgres.password },
  })
  for (const testCase of cases) await t.test(testCase.title, testCase.run)
})
