import { type Answer, any, beside, exact, exchange, field, get, not, ok, post } from '../../exchange.ts'

const RUN = '/api/v1/workflows/run'
const idOf = (answers: readonly Answer[]) => field(answers[0], 'workflow_id')

export default exchange({
  rule: 'answers a run that fails in time with 200 and the reason, keeps it, and goes on from the failed node when it is retried',
  source: 'decisions.md 1: failed run inside the wait; issue 7, 4: retry from the failed node',
  together: 'parts',
  config: { plugins: [beside('../../../support/runs.ts', import.meta.url)] },
  steps: [
    {
      request: post(RUN, { workflow: 'fail' }),
      expect: ok(
        exact({
          success: false,
          workflow_id: any('text'),
          status: 'failed',
          error: any('text'),
          failure_code: 'EXPRESSION_FAILED',
          execution_time_ms: any('number'),
        })
      ),
    },
    {
      request: answers => get(`/api/v1/workflows/${idOf(answers)}/status`),
      expect: ok({ status: 'failed', result: null, error: any('text'), completed_nodes: ['one'] }),
    },
    {
      request: answers => post(`/api/v1/workflows/${idOf(answers)}/retry`, undefined),
      expect: answers => ok({ success: false, status: 'failed', workflow_id: not(idOf(answers)) }),
    },
    {
      request: get('/api/v1/workflows/runs?workflow=fail&status=failed&limit=1'),
      expect: answers => ok({ runs: [{ workflow: 'fail', retry_of: idOf(answers) }], next_cursor: any('text') }),
    },
  ],
})
