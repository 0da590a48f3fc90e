import { type Answer, beside, exact, exchange, field, get, matching, ok, post } from '../../exchange.ts'

const RUN = '/api/v1/workflows/run'
const idOf = (answers: readonly Answer[]) => field(answers[0], 'workflow_id')

export default exchange({
  rule: 'wakes a wait node with the event of its name; the stream has the lines id, event, data up to run_completed',
  source: 'issue 7, 4: POST {name, data} wakes a wait node; decisions.md 1, SSE form',
  together: 'parts',
  config: { plugins: [beside('../../../support/runs.ts', import.meta.url)] },
  steps: [
    { request: post(RUN, { workflow: 'listen' }), expect: ok({ status: 'running' }) },
    {
      request: answers => post(`/api/v1/workflows/${idOf(answers)}/events`, { name: 'paid', data: { euro: 3 } }),
      expect: ok(exact({ success: true })),
    },
    {
      request: answers => get(`/api/v1/workflows/${idOf(answers)}/events`),
      expect: {
        status: 200,
        headers: { 'content-type': 'text/event-stream' },
        text: matching(
          /^:\n\n(id: \d+\nevent: [a-z_]+\ndata: \{"type":"[^\n]*\}\n\n)+id: \d+\nevent: run_completed\ndata: [^\n]*"result":\{"euro":3\}\}\n\n$/
        ),
      },
    },
  ],
})
