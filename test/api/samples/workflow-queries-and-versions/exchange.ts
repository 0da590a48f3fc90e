import { type Answer, any, exact, exchange, field, get, ok, post, refused } from '../../exchange.ts'

const RUNS = '/api/v1/workflows'
const OFFER = `name: offer
queries: { price: { description: What it costs, value: "\${{ nodes.offer.price }}" } }
nodes: { offer: { type: transform, value: { price: 12 } } }
`
const idOf = (answers: readonly Answer[]) => field(answers[0], 'workflow_id')

export default exchange({
  rule: 'lists the queries of a run and answers them, and lists the versions of a workflow',
  source: 'docs/guides/operate-runs.md',
  alone: true,
  files: { 'workflows/offer.yaml': OFFER },
  steps: [
    { request: post(`${RUNS}/run`, { workflow: 'offer' }), expect: ok({ status: 'completed' }) },
    {
      request: answers => get(`${RUNS}/${idOf(answers)}/queries`),
      expect: answers =>
        ok(exact({ workflow_id: idOf(answers), queries: [{ name: 'price', description: 'What it costs' }], signals: null })),
    },
    { request: answers => get(`${RUNS}/${idOf(answers)}/queries/price`), expect: ok({ name: 'price', value: 12 }) },
    {
      request: answers => get(`${RUNS}/${idOf(answers)}/queries/none`),
      expect: refused(400, 'INVALID_VALUE', { field: 'query', reason: any('text') }),
    },
    {
      request: get(`${RUNS}/versions?workflow=offer`),
      expect: ok({ versions: [{ is_current: true, open_runs: 0 }] }),
    },
  ],
})
