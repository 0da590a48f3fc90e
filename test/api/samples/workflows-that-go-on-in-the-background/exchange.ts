import { type Answer, any, beside, exact, exchange, field, get, ok, post } from '../../exchange.ts'

const RUN = '/api/v1/workflows/run'
const idOf = (answers: readonly Answer[]) => field(answers[0], 'workflow_id')

export default exchange({
  rule: 'answers Prefer: respond-async at once with running, message and status_url; the status says what the run waits for, and the answer ends it',
  source: 'http-api.md "Workflow run response", "Workflow status record"; decisions.md 1: workflow statuses, progress',
  together: 'parts',
  config: { plugins: [beside('../../../support/runs.ts', import.meta.url)] },
  steps: [
    {
      request: { ...post(RUN, { workflow: 'ask' }), headers: { prefer: 'respond-async' } },
      expect: ok({ success: true, workflow_id: any('text'), status: 'running', message: any('text'), status_url: any('text') }),
    },
    { request: answers => get(`/api/v1/workflows/${idOf(answers)}/events`), hold: 'node_waiting' },
    {
      request: answers => get(field(answers[0], 'status_url')),
      expect: answers =>
        ok({
          workflow_id: idOf(answers),
          status: 'running',
          progress: 0,
          current_node: 'may',
          completed_nodes: [],
          result: null,
          error: null,
          waiting_for: [{ step: 'may', question: { kind: 'approval', message: 'Shall it go on?' } }],
        }),
    },
    {
      request: answers => post(`/api/v1/workflows/${idOf(answers)}/answer`, { step: 'may', value: true }),
      expect: ok(exact({ success: true })),
    },
    // read to its end: the run has completed
    { request: answers => get(`/api/v1/workflows/${idOf(answers)}/events`), expect: { status: 200 } },
    {
      request: answers => get(field(answers[0], 'status_url')),
      expect: ok({
        status: 'completed',
        progress: 1,
        current_node: '',
        completed_nodes: ['may', 'done'],
        result: { answer: true },
        error: null,
      }),
    },
    {
      request: answers => get(`/api/v1/workflows/${idOf(answers)}/steps`),
      expect: ok({
        steps: [
          { step: 'may', type: 'human', status: 'completed' },
          { step: 'done', output: { answer: true } },
        ],
      }),
    },
  ],
})
