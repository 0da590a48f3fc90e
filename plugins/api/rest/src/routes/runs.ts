import type { JsonSchema } from '@svc/core'
import type { Json, ReplayRequest, Route, Workflows } from '@svc/core/contracts'
import {
  fieldInvalid,
  runRecord,
  BOOLEAN,
  INTEGER,
  list,
  nullable,
  OBJECT,
  object,
  ok,
  STRING,
  text,
  words,
} from '@svc/api-types'
import { afterOf, keyOf, RUN_EVENT, RUN_REPLY, RUN_STATUS, RUN_STEP, RUN_SUMMARY, settledRun } from '../run-schemas.ts'
import { briefStep, replyBody, statusBody, stepBody } from '../run-files.ts'
import type { RunStreams } from '../frames.ts'
import { queryOf, RUNS_QUERY } from './run-work.ts'

const PATH = '/api/v1/workflows'

const eventsQuery = object(
  {
    after: {
      type: 'integer',
      minimum: 0,
      description: 'Returns only events after this id. The header Last-Event-ID overrides it.',
    },
  },
  []
)
const ANY: JsonSchema = {}
const eventBody = object({ name: { ...(text('Name of the event that nodes wait for.') as object), maxLength: 100 }, data: ANY }, [
  'name',
])
const answerBody = object({
  step: { ...(text('The step in waiting_for.') as object), maxLength: 1_000 },
  value: {
    description:
      'For an approval: true, false, approved or rejected. For a choice: one of the choices. Otherwise: the requested input.',
  },
})
const replayBody = {
  ...(object(
    {
      from: {
        ...(text(
          'The node from which nodes run again: fetch, or fetch#2 for its second visit. Default: the first node.'
        ) as object),
        maxLength: 200,
      },
      input: { ...(OBJECT as object), description: 'Another input. Default: that of the run.' },
      parameters: { ...(OBJECT as object), description: 'Other parameters. Default: those of the run.' },
      definition: {
        ...(words('same', 'current') as object),
        description: 'The definition that the run used, or the current one.',
      },
    },
    []
  ) as object),
  additionalProperties: false,
}
const success = ok('The server stored the value, and the run continues with it.', object({ success: BOOLEAN }))

const events = {
  '200': {
    description:
      'Server-sent events with the lines id, event and data. The event is the type in its data, and this is the schema of the data. The stream has all events of the run after Last-Event-ID, on any worker, and then new events until run_completed or run_failed. node_progress has no id line: only connected clients receive it. Comments are heartbeats. If the stream ends before the run, open it again. If the server ends the stream, its last line is retry with the milliseconds to wait.',
    schema: RUN_EVENT,
    contentType: 'text/event-stream',
  },
}

interface RunDependencies {
  readonly workflows: Workflows
  readonly streams: RunStreams
}

/** Routes for runs: status, steps, events, and actions on a run. */
export function createRunRoutes(parts: RunDependencies): Record<string, Route> {
  return {
    workflow_runs: listRoute(parts),
    workflow_status: statusRoute(parts),
    workflow_steps: stepsRoute(parts),
    workflow_events: eventsRoute(parts),
    workflow_signal: signalRoute(parts),
    workflow_queries: queriesRoute(parts),
    workflow_query: queryRoute(parts),
    workflow_answer: answerRoute(parts),
    workflow_cancel: cancelRoute(parts),
    workflow_retry: retryRoute(parts),
    workflow_replay: replayRoute(parts),
  }
}

const listRoute = ({ workflows }: RunDependencies): Route => ({
  method: 'GET',
  path: `${PATH}/runs`,
  summary: 'List runs, newest first',
  scope: 'workflows',
  description: 'A page can be short or empty; only next_cursor null marks the end.',
  query: RUNS_QUERY,
  responses: ok('A page of runs.', object({ runs: list(RUN_SUMMARY), next_cursor: nullable('string') })),
  async handle({ query }, ctx) {
    const page = await workflows.runs(queryOf(query), ctx)
    return { body: { runs: page.runs.map(runRecord), next_cursor: page.next ?? null } }
  },
})

const statusRoute = ({ workflows }: RunDependencies): Route => ({
  method: 'GET',
  path: `${PATH}/:id/status`,
  summary: 'Read the status of a run',
  scope: 'workflows',
  responses: ok('The run.', RUN_STATUS),
  handle: async ({ params }, ctx) => ({ body: statusBody(await workflows.get(params.id!, ctx)) }),
})

const MOST_STEPS = 10_000
const stepsQuery = object(
  {
    step: { ...(text('Lists only this step.') as object), maxLength: 1_000 },
    detail: {
      ...(words('full', 'brief') as object),
      description: 'brief: without input and output (null), and with the code and message of errors only. Default: full.',
    },
    limit: { type: 'integer', minimum: 1, maximum: MOST_STEPS, description: 'Maximum steps of the page. Default: all.' },
    cursor: { ...(text('The next_cursor of the previous page.') as object), maxLength: 20 },
  },
  []
)
const steps = object({
  workflow_id: STRING,
  steps: list(RUN_STEP),
  next_cursor: nullable('string'),
  last_event: {
    ...(INTEGER as object),
    description: 'The id of the last event that the steps contain: the events after it continue them.',
  },
})

const stepsRoute = ({ workflows }: RunDependencies): Route => ({
  method: 'GET',
  path: `${PATH}/:id/steps`,
  summary: 'List the steps of a run with their input and output',
  scope: 'workflows',
  query: stepsQuery,
  responses: ok('The steps in the order in which they started.', steps),
  async handle({ params, query: { step, detail, limit, cursor } }, ctx) {
    const from = cursor === undefined ? 0 : positionOf(cursor)
    const { steps: recorded, event } = await workflows.stepsAt(params.id!, ctx)
    const all = step === undefined ? recorded : recorded.filter(one => one.step === step)
    const end = limit === undefined ? all.length : from + Number(limit)
    const shown = all.slice(from, end).map(detail === 'brief' ? briefStep : one => stepBody(params.id!, one))
    const next = end < all.length ? String(end) : null
    return { body: { workflow_id: params.id!, steps: shown, next_cursor: next, last_event: event } }
  },
})

/** Steps keep their place: further ones come at the end. Throws INVALID_VALUE. */
function positionOf(cursor: string): number {
  if (!/^\d{1,9}$/.test(cursor)) throw fieldInvalid('cursor', 'must be the cursor that an earlier page returned')
  return Number(cursor)
}

const eventsRoute = ({ streams }: RunDependencies): Route => ({
  method: 'GET',
  path: `${PATH}/:id/events`,
  summary: 'Stream the events of a run',
  scope: 'workflows',
  query: eventsQuery,
  responses: events,
  streams: 'text/event-stream',
  endless: true,
  async *stream({ params, headers, query }, ctx) {
    yield* streams.of(params.id!, afterOf(headers, query.after), ctx)
  },
})

const signalRoute = ({ workflows }: RunDependencies): Route => ({
  method: 'POST',
  path: `${PATH}/:id/events`,
  summary: 'Send an event to a run; nodes that wait for it continue',
  scope: 'workflows',
  body: eventBody,
  responses: success,
  async handle({ params, body }, ctx) {
    const { name, data = null } = body as { readonly name: string; readonly data?: Json }
    await workflows.signal(params.id!, { name, data }, ctx)
    return { body: { success: true } }
  },
})

const QUERIES = list(object({ name: STRING, description: nullable('string') }))
const SIGNALS: JsonSchema = {
  type: ['object', 'null'],
  additionalProperties: { type: ['object', 'boolean'] },
  description: 'JSON Schemas of the data of events by name; null if the run accepts all events.',
}

const queriesRoute = ({ workflows }: RunDependencies): Route => ({
  method: 'GET',
  path: `${PATH}/:id/queries`,
  summary: 'List the queries and events of the definition of a run',
  scope: 'workflows',
  responses: ok('The queries and events.', object({ workflow_id: STRING, queries: QUERIES, signals: SIGNALS })),
  async handle({ params }, ctx) {
    const { queries, signals } = await workflows.interface(params.id!, ctx)
    const named = Object.entries(queries).map(([name, { description = null }]) => ({ name, description }))
    return { body: { workflow_id: params.id!, queries: named, signals: (signals ?? null) as Json } }
  },
})

const queryRoute = ({ workflows }: RunDependencies): Route => ({
  method: 'GET',
  path: `${PATH}/:id/queries/:name`,
  summary: 'Read a query of a run, which changes nothing',
  scope: 'workflows',
  responses: ok('The value.', object({ workflow_id: STRING, name: STRING, value: ANY })),
  async handle({ params }, ctx) {
    const value = await workflows.query(params.id!, params.name!, ctx)
    return { body: { workflow_id: params.id!, name: params.name!, value } }
  },
})

const answerRoute = ({ workflows }: RunDependencies): Route => ({
  method: 'POST',
  path: `${PATH}/:id/answer`,
  summary: 'Answer a question of a run',
  scope: 'workflows',
  body: answerBody,
  responses: success,
  async handle({ params, body }, ctx) {
    await workflows.answer(params.id!, body as { readonly step: string; readonly value: Json }, ctx)
    return { body: { success: true } }
  },
})

const cancelRoute = ({ workflows }: RunDependencies): Route => ({
  method: 'POST',
  path: `${PATH}/:id/cancel`,
  summary: 'Cancel a run: abort its running nodes and run its compensation steps',
  scope: 'workflows',
  responses: ok('The run: failed with "cancelled", or still running if the cancellation takes more than 10 s.', RUN_STATUS),
  handle: async ({ params }, ctx) => ({ body: statusBody(await workflows.cancel(params.id!, ctx)) }),
})

const retryRoute = ({ workflows }: RunDependencies): Route => ({
  method: 'POST',
  path: `${PATH}/:id/retry`,
  summary: 'Start a run that continues where this run failed or was cancelled',
  scope: 'workflows',
  responses: ok('The new run, in the form of POST /api/v1/workflows/run.', RUN_REPLY),
  async handle({ params, headers }, ctx) {
    const key = keyOf(headers)
    const begun = await workflows.retry(params.id!, key === undefined ? {} : { idempotencyKey: key }, ctx)
    return { body: replyBody(await settledRun(workflows, begun, headers, ctx)) }
  },
})

const replayRoute = ({ workflows }: RunDependencies): Route => ({
  method: 'POST',
  path: `${PATH}/:id/replay`,
  summary: 'Start a run that repeats this ended run from a node, with the recorded results of the nodes before it',
  scope: 'workflows',
  body: replayBody,
  responses: ok('The new run, in the form of POST /api/v1/workflows/run.', RUN_REPLY),
  async handle({ params, headers, body }, ctx) {
    const key = keyOf(headers)
    const request = { ...(body as ReplayRequest), ...(key === undefined ? {} : { idempotencyKey: key }) }
    const begun = await workflows.replay(params.id!, request, ctx)
    return { body: replyBody(await settledRun(workflows, begun, headers, ctx)) }
  },
})
