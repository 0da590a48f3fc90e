import type { JsonSchema } from '@svc/core'
import type { Json, Route, RunStatus, Workflows } from '@svc/core/contracts'
import { runRecord, runReply, statusRecord, stepRecord } from '@svc/api-types'
import { afterOf, keyOf, RUN_EVENT, RUN_REPLY, RUN_STATUS, RUN_STEP, RUN_SUMMARY, waitOf } from '../run-schemas.ts'
import type { RunStreams } from '../frames.ts'
import { BOOLEAN, list, nullable, object, ok, STRING, text, words } from '../schemas.ts'

const PATH = '/api/v1/workflows'
const PAGE = 50

const runsQuery = object(
  {
    workflow: text('Runs of this workflow.'),
    status: words('running', 'completed', 'failed'),
    limit: { type: 'integer', minimum: 1, maximum: 200, description: `Maximum entries of the page; default ${PAGE}.` },
    cursor: text('The next_cursor of the page before.'),
  },
  []
)
const eventsQuery = object(
  { after: { type: 'integer', minimum: 0, description: 'Events after this one; the header Last-Event-ID comes first.' } },
  []
)
const ANY: JsonSchema = {}
const eventBody = object({ name: { ...(text('What nodes wait for.') as object), maxLength: 100 }, data: ANY }, ['name'])
const answerBody = object({
  step: { ...(text('That of waiting_for.') as object), maxLength: 1_000 },
  value: { description: 'true or false to an approval (or approved, rejected), one of the choices, or what was asked for.' },
})
const success = ok('It is stored; the run goes on with it.', object({ success: BOOLEAN }))

const events = {
  '200': {
    description:
      'Server-sent events: lines id, event, data; the event is named by the type in its data, whose schema this is. All that happened in the run after the event that Last-Event-ID names, on whichever worker, then what happens, up to run_completed or run_failed. node_progress has no line id: only connected readers receive it. Comments are heartbeats. A stream that ends before the run does is to be opened again; where the server ends it, its last words are retry with the milliseconds to wait.',
    schema: RUN_EVENT,
    contentType: 'text/event-stream',
  },
}

interface RunParts {
  readonly workflows: Workflows
  readonly streams: RunStreams
}

/** Runs: how they stand, what happens in them, and what may be said to them. */
export function createRunRoutes(parts: RunParts): Record<string, Route> {
  return {
    workflow_runs: listRoute(parts),
    workflow_status: statusRoute(parts),
    workflow_steps: stepsRoute(parts),
    workflow_events: eventsRoute(parts),
    workflow_signal: signalRoute(parts),
    workflow_answer: answerRoute(parts),
    workflow_cancel: cancelRoute(parts),
    workflow_retry: retryRoute(parts),
  }
}

const listRoute = ({ workflows }: RunParts): Route => ({
  method: 'GET',
  path: `${PATH}/runs`,
  summary: 'List runs, newest first',
  scope: 'workflows',
  query: runsQuery,
  responses: ok('One page of them.', object({ runs: list(RUN_SUMMARY), next_cursor: nullable('string') })),
  async handle({ query: { workflow, status, limit, cursor } }, ctx) {
    const page = await workflows.runs(
      {
        limit: limit === undefined ? PAGE : Number(limit),
        ...(workflow === undefined ? {} : { workflow }),
        ...(status === undefined ? {} : { status: status as RunStatus }),
        ...(cursor === undefined ? {} : { cursor }),
      },
      ctx
    )
    return { body: { runs: page.runs.map(runRecord), next_cursor: page.next ?? null } }
  },
})

const statusRoute = ({ workflows }: RunParts): Route => ({
  method: 'GET',
  path: `${PATH}/:id/status`,
  summary: 'Read how a run stands',
  scope: 'workflows',
  responses: ok('The run.', RUN_STATUS),
  handle: async ({ params }, ctx) => ({ body: statusRecord(await workflows.get(params.id!, ctx)) }),
})

const stepsRoute = ({ workflows }: RunParts): Route => ({
  method: 'GET',
  path: `${PATH}/:id/steps`,
  summary: 'Read each step of a run, with its input and output',
  scope: 'workflows',
  responses: ok('The steps in the order they began.', object({ workflow_id: STRING, steps: list(RUN_STEP) })),
  async handle({ params }, ctx) {
    const steps = await workflows.steps(params.id!, ctx)
    return { body: { workflow_id: params.id!, steps: steps.map(stepRecord) } }
  },
})

const eventsRoute = ({ streams }: RunParts): Route => ({
  method: 'GET',
  path: `${PATH}/:id/events`,
  summary: 'Read what happens in a run, as it happens',
  scope: 'workflows',
  query: eventsQuery,
  responses: events,
  streams: 'text/event-stream',
  endless: true,
  async *stream({ params, headers, query }, ctx) {
    yield* streams.of(params.id!, afterOf(headers, query.after), ctx)
  },
})

const signalRoute = ({ workflows }: RunParts): Route => ({
  method: 'POST',
  path: `${PATH}/:id/events`,
  summary: 'Tell a run an event: nodes that wait for it go on',
  scope: 'workflows',
  body: eventBody,
  responses: success,
  async handle({ params, body }, ctx) {
    const { name, data = null } = body as { readonly name: string; readonly data?: Json }
    await workflows.signal(params.id!, { name, data }, ctx)
    return { body: { success: true } }
  },
})

const answerRoute = ({ workflows }: RunParts): Route => ({
  method: 'POST',
  path: `${PATH}/:id/answer`,
  summary: 'Answer what a run asks a person',
  scope: 'workflows',
  body: answerBody,
  responses: success,
  async handle({ params, body }, ctx) {
    await workflows.answer(params.id!, body as { readonly step: string; readonly value: Json }, ctx)
    return { body: { success: true } }
  },
})

const cancelRoute = ({ workflows }: RunParts): Route => ({
  method: 'POST',
  path: `${PATH}/:id/cancel`,
  summary: 'End a run: what runs is aborted, what is to be undone is',
  scope: 'workflows',
  responses: ok('The run: failed with "cancelled", or still running where ending it takes more than 10 s.', RUN_STATUS),
  handle: async ({ params }, ctx) => ({ body: statusRecord(await workflows.cancel(params.id!, ctx)) }),
})

const retryRoute = ({ workflows }: RunParts): Route => ({
  method: 'POST',
  path: `${PATH}/:id/retry`,
  summary: 'Begin a run that goes on from where this one failed or was cancelled',
  scope: 'workflows',
  responses: ok('The new run, as that of POST /api/v1/workflows/run.', RUN_REPLY),
  async handle({ params, headers }, ctx) {
    const key = keyOf(headers)
    const { id } = await workflows.retry(params.id!, key === undefined ? {} : { idempotencyKey: key }, ctx)
    return { body: runReply(await workflows.settled(id, waitOf(headers), ctx)) }
  },
})
