import { INTEGER, object, ok, STRING, words } from '@svc/api-types'
import type { JsonSchema } from '@svc/core'
import type { Evaluation, EvaluationRequest, Evaluations, Route } from '@svc/core/contracts'
import { LIMITS, REQUEST } from './cases.ts'

const PATH = '/api/v1/evaluations'
const MOST_WAIT_MS = 30_000
const NUMBER: JsonSchema = { type: 'number' }

const tokens = object({ input: INTEGER, output: INTEGER })
const error = object({ code: STRING, message: STRING, details: { type: 'object' } })
const totals: JsonSchema = {
  title: 'EvaluationTotals',
  ...(object(
    {
      target: STRING,
      samples: { ...(INTEGER as object), description: 'Turns that have a result.' },
      passed: INTEGER,
      failed: INTEGER,
      errors: { ...(INTEGER as object), description: 'Turns that failed, or whose checks could not run.' },
      pass_rate: NUMBER,
      tokens,
      cost: NUMBER,
      check_tokens: { ...(tokens as object), description: 'Tokens of judges and embeddings.' },
      check_cost: { ...(NUMBER as object), description: 'Cost of judges and embeddings, by models.prices.' },
      latency_ms: object({ p50: NUMBER, p95: NUMBER }),
      unrecorded: { ...(INTEGER as object), description: 'Tool calls that were not in the record.' },
    },
    ['target', 'samples', 'passed', 'failed', 'errors', 'pass_rate', 'tokens', 'unrecorded']
  ) as object),
}
const check = object(
  {
    check: STRING,
    passed: { type: 'boolean' },
    score: NUMBER,
    reason: STRING,
    error: { type: 'boolean' },
    tokens,
    cost: { ...(NUMBER as object), description: 'Cost of the judge or of the embeddings.' },
  },
  ['check', 'passed']
)
const result: JsonSchema = {
  title: 'EvaluationResult',
  ...(object(
    {
      case: STRING,
      target: STRING,
      repeat: INTEGER,
      status: words('passed', 'failed', 'error'),
      reply: { ...(STRING as object), description: 'The reply; long replies are cut.' },
      checks: { type: 'array', items: check },
      error,
      provider: STRING,
      model: STRING,
      tokens,
      cost: NUMBER,
      duration_ms: NUMBER,
      tools: { type: 'array', items: STRING },
      unrecorded: INTEGER,
    },
    ['case', 'target', 'repeat', 'status', 'reply', 'checks', 'tokens', 'tools', 'unrecorded']
  ) as object),
}
const comparison = object(
  {
    check: STRING,
    targets: { type: 'array', items: object({ target: STRING, pass_rate: NUMBER, score: NUMBER }, ['target', 'pass_rate']) },
    better: STRING,
  },
  ['check', 'targets']
)
const report: JsonSchema = {
  title: 'EvaluationReport',
  ...(object(
    {
      complete: { type: 'boolean', description: 'Whether all turns have a result.' },
      done: INTEGER,
      total: INTEGER,
      targets: { type: 'array', items: totals },
      better: object({
        cases: { type: 'array', items: object({ target: STRING, cases: INTEGER }) },
        ties: INTEGER,
      }),
      cases: {
        type: 'array',
        items: object(
          {
            case: STRING,
            targets: { type: 'array', items: totals },
            checks: { type: 'array', items: comparison },
            better: STRING,
          },
          ['case', 'targets', 'checks']
        ),
      },
      results: { type: 'array', items: result },
    },
    ['complete', 'done', 'total', 'targets', 'cases', 'results']
  ) as object),
}
const EVALUATION: JsonSchema = {
  title: 'Evaluation',
  ...(object(
    {
      id: STRING,
      state: words('queued', 'running', 'completed', 'failed', 'cancelled'),
      done: { ...(INTEGER as object), description: 'Turns that have a result.' },
      total: { ...(INTEGER as object), description: '0 until it runs.' },
      error,
      report,
    },
    ['id', 'state', 'done', 'total']
  ) as object),
}

/** The routes of evaluations. An evaluation exists only for the principal that started it. */
export const createRoutes = (evaluations: Evaluations): Record<string, Route> => ({
  evaluation_start: {
    method: 'POST',
    path: PATH,
    summary: 'Run cases or stored turns, and check their replies',
    description: `Runs in a background job, one at a time for each principal. At most ${LIMITS.cases} cases, ${LIMITS.samples} turns and ${LIMITS.checkResults} checks.`,
    scope: 'chat',
    query: { type: 'object', additionalProperties: false },
    body: REQUEST,
    bodyLimit: LIMITS.bytes,
    responses: { '202': { description: 'The evaluation will run.', schema: EVALUATION } },
    handle: async ({ body }, ctx) => ({
      status: 202,
      body: record(await evaluations.start(body as unknown as EvaluationRequest, ctx)),
    }),
  },
  evaluation: {
    method: 'GET',
    path: `${PATH}/:id`,
    summary: 'Read an evaluation with the results so far',
    scope: 'chat',
    query: {
      type: 'object',
      additionalProperties: false,
      properties: {
        wait_ms: {
          type: 'integer',
          minimum: 0,
          maximum: MOST_WAIT_MS,
          description: 'Waits so long for the end. Default: 0.',
        },
      },
    },
    responses: ok('The evaluation.', EVALUATION),
    handle: async ({ params, query }, ctx) => ({
      body: record(await evaluations.get(params.id!, Number(query.wait_ms ?? 0), ctx)),
    }),
  },
  evaluation_cancel: {
    method: 'POST',
    path: `${PATH}/:id/cancel`,
    summary: 'Stop an evaluation; the results so far stay',
    scope: 'chat',
    query: { type: 'object', additionalProperties: false },
    responses: ok('The evaluation.', EVALUATION),
    handle: async ({ params }, ctx) => ({ body: record(await evaluations.cancel(params.id!, ctx)) }),
  },
})

const record = (evaluation: Evaluation) => ({ ...evaluation })
