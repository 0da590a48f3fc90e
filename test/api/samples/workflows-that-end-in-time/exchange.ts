import { any, beside, exact, exchange, get, ok, post } from '../../exchange.ts'

export default exchange({
  rule: 'answers a run that ends while the request waits with its result; input and parameters are optional',
  source: 'http-api.md "Workflow run response"; decisions.md 1: sync or async workflow run',
  together: 'parts',
  config: { plugins: [beside('../../../support/runs.ts', import.meta.url)] },
  steps: [
    {
      request: post('/api/v1/workflows/run', { workflow: 'sum', input: { a: 2 }, parameters: { by: 5 } }),
      expect: ok(
        exact({
          success: true,
          workflow_id: any('text'),
          status: 'completed',
          result: { sum: 7 },
          execution_time_ms: any('number'),
        })
      ),
    },
    {
      request: get('/api/v1/workflows'),
      expect: ok({ workflows: any('array') }),
    },
    {
      request: get('/api/v1/workflows/definition?workflow=sum'),
      expect: ok({ workflow: { name: 'sum', description: 'Adds', nodes: 1 }, definition: { name: 'sum' } }),
    },
  ],
})
