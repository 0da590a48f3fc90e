import { type Answer, any, beside, exact, exchange, field, get, not, ok, post, refused, remove } from '../../exchange.ts'

const RUNS = '/api/v1/workflows'
const LETTERS = `${RUNS}/dead-letters`
const idOf = (answers: readonly Answer[], at: number) => field(answers[at], 'workflow_id')

export default exchange({
  rule: 'replays an ended run from a node, retries a dead letter once and drops it, pauses and resumes runs and workflows, and sends a result as a file',
  source: 'docs/guides/operate-runs.md',
  together: 'parts',
  config: { plugins: [beside('../../../support/runs.ts', import.meta.url)] },
  steps: [
    { request: post(`${RUNS}/run`, { workflow: 'fail' }), expect: ok({ status: 'failed' }) },
    {
      request: answers => get(`${LETTERS}/${idOf(answers, 0)}`),
      expect: answers => ok({ run: { workflow_id: idOf(answers, 0), continued_by: null }, failed_steps: [{ status: 'failed' }] }),
    },
    {
      request: answers => post(`${LETTERS}/${idOf(answers, 0)}/retry`, undefined),
      expect: answers => ok({ status: 'failed', workflow_id: not(idOf(answers, 0)) }),
    },
    {
      request: answers => post(`${LETTERS}/${idOf(answers, 0)}/retry`, undefined),
      expect: refused(400, 'INVALID_VALUE', { field: 'workflow_id', reason: 'is not a dead letter' }),
    },
    {
      request: answers => post(`${RUNS}/${idOf(answers, 2)}/replay`, { from: 'one' }),
      expect: answers => ok({ status: 'failed', workflow_id: not(idOf(answers, 2)) }),
    },
    {
      request: answers => post(`${RUNS}/${idOf(answers, 2)}/replay`, { from: 'none' }),
      expect: refused(400, 'INVALID_VALUE', { field: 'from', reason: any('text') }),
    },
    {
      request: answers => remove(`${LETTERS}/${idOf(answers, 4)}`),
      expect: ok(exact({ success: true })),
    },
    { request: post(`${RUNS}/run`, { workflow: 'sum', input: { a: 1 } }), expect: ok({ status: 'completed' }) },
    { request: answers => get(`${RUNS}/${idOf(answers, 7)}/result`), expect: ok(any('object')) },
    {
      request: { ...post(`${RUNS}/run`, { workflow: 'ask' }), headers: { prefer: 'respond-async' } },
      expect: ok({ status: 'running' }),
    },
    { request: answers => post(`${RUNS}/${idOf(answers, 9)}/pause`, undefined), expect: ok({ paused_at: any('text') }) },
    { request: answers => post(`${RUNS}/${idOf(answers, 9)}/resume`, undefined), expect: ok({ paused_at: null }) },
    { request: post(`${RUNS}/pause`, { workflow: 'sum' }), expect: ok(exact({ success: true })) },
    { request: post(`${RUNS}/resume`, { workflow: 'sum' }), expect: ok(exact({ success: true, released: 0 })) },
  ],
})
