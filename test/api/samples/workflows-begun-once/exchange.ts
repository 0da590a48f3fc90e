import { beside, exchange, field, not, ok, post } from '../../exchange.ts'

const run = (key: string) => ({
  ...post('/api/v1/workflows/run', { workflow: 'sum', input: { a: 1 } }),
  headers: { 'idempotency-key': key },
})

export default exchange({
  rule: 'answers a second request with the same Idempotency-Key with the run of the first',
  source: 'issue 7, 4: Idempotency-Key',
  together: 'parts',
  config: { plugins: [beside('../../../support/runs.ts', import.meta.url)] },
  steps: [
    { request: run('a'), expect: ok({ status: 'completed' }) },
    { request: run('a'), expect: answers => ok({ workflow_id: field(answers[0], 'workflow_id'), result: { sum: 2 } }) },
    { request: run('b'), expect: answers => ok({ workflow_id: not(field(answers[0], 'workflow_id')) }) },
  ],
})
