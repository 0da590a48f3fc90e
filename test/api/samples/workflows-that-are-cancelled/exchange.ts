import { type Answer, any, beside, exchange, field, ok, post, refused } from '../../exchange.ts'

const RUN = '/api/v1/workflows/run'
const idOf = (answers: readonly Answer[]) => field(answers[0], 'workflow_id')

export default exchange({
  rule: 'ends a run that is cancelled as failed with the error "cancelled"; one that has ended is not cancelled, answered or sent anything',
  source:
    'decisions.md 1: workflow statuses; issue 7, bad input: cancel of a finished run, an answer to a node that does not wait',
  together: 'parts',
  config: { plugins: [beside('../../../support/runs.ts', import.meta.url)] },
  steps: [
    { request: post(RUN, { workflow: 'listen' }), expect: ok({ status: 'running' }) },
    {
      request: answers => post(`/api/v1/workflows/${idOf(answers)}/answer`, { step: 'paid', value: true }),
      expect: refused(400, 'INVALID_VALUE', { field: 'step', reason: 'waits for no answer' }),
    },
    {
      request: answers => post(`/api/v1/workflows/${idOf(answers)}/cancel`, undefined),
      expect: ok({ status: 'failed', error: 'cancelled', failure_code: 'CANCELLED', result: null }),
    },
    {
      request: answers => post(`/api/v1/workflows/${idOf(answers)}/cancel`, undefined),
      expect: refused(400, 'INVALID_VALUE', { field: 'workflow_id', reason: any('text') }),
    },
    {
      request: answers => post(`/api/v1/workflows/${idOf(answers)}/events`, { name: 'paid' }),
      expect: refused(400, 'INVALID_VALUE', { field: 'workflow_id', reason: 'has ended' }),
    },
  ],
})
