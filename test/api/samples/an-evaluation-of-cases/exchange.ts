import { any, exchange, get, ok, post, refused } from '../../exchange.ts'
import type { Answer } from '../../exchange.ts'

const EVALUATIONS = '/api/v1/evaluations'
const pathOf = (answers: readonly Answer[]) => `${EVALUATIONS}/${(answers[0]!.body as { id: string }).id}`
const cases = [
  { name: 'fine', message: 'Hello', checks: [{ contains: 'Hello' }, { latency: 60_000 }] },
  { name: 'wrong', message: 'Hello', checks: [{ exact: 'bye' }] },
  { name: 'broken', message: '/fail authentication' },
]

export default exchange({
  rule: 'runs cases in the background and compares two targets; a failed provider is an error of its case',
  source: 'docs/guides/evaluate-a-profile.md',
  steps: [
    {
      request: post(EVALUATIONS, { cases, targets: [{ model: 'local-1' }, { model: 'local-small' }] }),
      expect: { status: 202, body: { id: any('text'), done: any('integer'), total: any('integer') } },
    },
    {
      request: answers => get(`${pathOf(answers)}?wait_ms=30000`),
      expect: ok({
        state: 'completed',
        done: 6,
        total: 6,
        report: {
          complete: true,
          targets: [
            { target: 'local-1', passed: 1, failed: 1, errors: 1, unrecorded: 0 },
            { target: 'local-small', passed: 1, failed: 1, errors: 1, unrecorded: 0 },
          ],
          cases: [{ case: 'fine' }, { case: 'wrong' }, { case: 'broken' }],
        },
      }),
    },
    { request: answers => post(`${pathOf(answers)}/cancel`, undefined), expect: ok({ state: 'completed', done: 6 }) },
    {
      request: get(`${EVALUATIONS}/none`),
      expect: refused(404, 'INVALID_VALUE', { field: 'id', reason: 'not found' }),
    },
    {
      request: post(EVALUATIONS, { cases: [{ name: 'a', message: 'b', checks: [{ regex: '(' }] }] }),
      expect: refused(400, 'INVALID_VALUE', { field: 'cases[0].checks[0].regex' }),
    },
  ],
})
