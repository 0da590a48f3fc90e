import { type CallContext, type JsonSchema, svcError } from '@svc/core'
import type {
  BulkAction,
  BulkOutcome,
  Http,
  Json,
  Route,
  Run,
  RunFilter,
  RunQuery,
  RunStatus,
  Workflows,
} from '@svc/core/contracts'
import { BOOLEAN, INTEGER, list, nullable, object, ok, runRecord, STRING, text, toPublicError, words } from '@svc/api-types'
import { fileReply, replyBody, statusBody, stepBody } from '../run-files.ts'
import { keyOf, RUN_REPLY, RUN_STATUS, RUN_STEP, RUN_SUMMARY, settledRun, timeOf, TIME_GIVEN } from '../run-schemas.ts'

const PATH = '/api/v1/workflows'
const LETTERS = `${PATH}/dead-letters`
const [PAGE, MOST_LISTED] = [50, 200]

const said = (schema: JsonSchema, description: string): JsonSchema => ({ ...(schema as object), description })
const conditions = {
  workflow: { ...(text('Only runs of this workflow.') as object), maxLength: 1_000 },
  failure_code: { ...(text('Only runs that failed with this code.') as object), maxLength: 100 },
  owner: { ...(text('Only runs of this principal. Those of others need the scope admin.') as object), maxLength: 1_000 },
}
const times = (what: string) => ({
  since: said(TIME_GIVEN, `Only runs that were ${what} at this time or later.`),
  until: said(TIME_GIVEN, `Only runs that were ${what} before this time.`),
})
const paging = {
  limit: { type: 'integer', minimum: 1, maximum: MOST_LISTED, description: `Maximum entries of the page; default ${PAGE}.` },
  cursor: { ...(text('The next_cursor of the previous page.') as object), maxLength: 1_000 },
} as const

/** The query of a list of runs. */
export const RUNS_QUERY = object(
  {
    ...conditions,
    status: words('running', 'completed', 'failed'),
    paused: said(words('true', 'false'), 'Only paused runs, or only others.'),
    ...times('created'),
    ...paging,
  },
  []
)

interface Conditions {
  readonly workflow?: string
  readonly status?: string
  readonly failure_code?: string
  readonly owner?: string
  readonly since?: string
  readonly until?: string
}

/** The filter in a query or body. Throws INVALID_VALUE. */
function filterOf({ workflow, status, failure_code: errorCode, owner, since, until }: Conditions) {
  const filter = { workflow, status, errorCode, owner, since: timeOf('since', since), until: timeOf('until', until) }
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)) as RunFilter & {
    readonly status?: RunStatus
  }
}

/** The query of a list of runs for the service. Throws INVALID_VALUE. */
export const queryOf = (query: Readonly<Record<string, string>>): RunQuery => ({
  ...filterOf(query),
  ...(query.paused === undefined ? {} : { paused: query.paused === 'true' }),
  limit: query.limit === undefined ? PAGE : Number(query.limit),
  ...(query.cursor === undefined ? {} : { cursor: query.cursor }),
})

interface RunWorkOptions {
  readonly workflows: Workflows
  readonly http: Http
}

/** Routes for operators of runs: dead letters, and changes of many runs. */
export const createRunWorkRoutes = (options: RunWorkOptions): Record<string, Route> => ({
  ...letterRoutes(options),
  workflow_runs_bulk: bulkRoute(options),
  ...pauseRoutes(options),
  workflow_result: resultRoute(options),
})

const letterRoutes = ({ workflows }: RunWorkOptions): Record<string, Route> => ({
  workflow_dead_letters: {
    method: 'GET',
    path: LETTERS,
    summary: 'List runs that failed for good, the latest failure first',
    description:
      'A dead letter is a failed run that was not cancelled, and that no retry or replay continues. A page can be short or empty; only next_cursor null marks the end.',
    scope: 'workflows',
    query: object({ ...conditions, ...times('failed'), ...paging }, []),
    responses: ok('A page of runs.', object({ runs: list(RUN_SUMMARY), next_cursor: nullable('string') })),
    async handle({ query }, ctx) {
      const page = await workflows.runs({ ...queryOf(query), dead: true }, ctx)
      return { body: { runs: page.runs.map(runRecord), next_cursor: page.next ?? null } }
    },
  },
  workflow_dead_letter: {
    method: 'GET',
    path: `${LETTERS}/:id`,
    summary: 'Read a failed run with the steps that failed',
    scope: 'workflows',
    responses: ok('The run, and its failed steps.', object({ run: RUN_STATUS, failed_steps: list(RUN_STEP) })),
    async handle({ params }, ctx) {
      const [run, steps] = await Promise.all([letterOf(workflows, params.id!, ctx), workflows.steps(params.id!, ctx)])
      const failed = steps.filter(({ status }) => status === 'failed')
      return { body: { run: statusBody(run), failed_steps: failed.map(step => stepBody(run.id, step)) } }
    },
  },
  workflow_dead_letter_retry: {
    method: 'POST',
    path: `${LETTERS}/:id/retry`,
    summary: 'Retry a failed run, unless another run already continues it',
    scope: 'workflows',
    responses: ok('The new run, in the form of POST /api/v1/workflows/run.', RUN_REPLY),
    async handle({ params, headers }, ctx) {
      const key = keyOf(headers)
      if (key === undefined) await letterOf(workflows, params.id!, ctx)
      const begun = await workflows.retry(params.id!, { once: true, ...(key === undefined ? {} : { idempotencyKey: key }) }, ctx)
      return { body: replyBody(await settledRun(workflows, begun, headers, ctx)) }
    },
  },
  workflow_dead_letter_drop: {
    method: 'DELETE',
    path: `${LETTERS}/:id`,
    summary: 'Delete a dead letter with its log',
    scope: 'workflows',
    responses: ok('It is deleted.', object({ success: BOOLEAN })),
    async handle({ params }, ctx) {
      await workflows.drop(params.id!, ctx)
      return { body: { success: true } }
    },
  },
})

/** A run that failed for good. Throws INVALID_VALUE for others. */
async function letterOf(workflows: Workflows, id: string, ctx: CallContext): Promise<Run> {
  const run = await workflows.get(id, ctx)
  if (run.status === 'failed' && run.error?.code !== 'CANCELLED' && run.continuedBy === undefined) return run
  const reason = 'is not a dead letter'
  throw svcError('INVALID_VALUE', `the run ${reason}`, { details: { field: 'workflow_id', value: id, reason } })
}

const BULK_BODY = {
  ...(object(
    {
      action: said(
        words('cancel', 'retry', 'drop'),
        'cancel: running runs. retry: dead letters, and cancelled runs with failure_code CANCELLED. drop: dead letters.'
      ),
      ...conditions,
      status: words('running', 'failed'),
      ...times('created'),
      dry_run: said(BOOLEAN, 'Only counts the runs.'),
    },
    ['action']
  ) as object),
  additionalProperties: false,
}
const BULK_REPLY: JsonSchema = {
  ...(object(
    {
      count: said(INTEGER, 'Number of selected runs.'),
      job_id: said(nullable('string'), 'The job that changes them, for more than 200.'),
      changed: INTEGER,
      pending: said(INTEGER, 'Runs whose cancellation takes longer.'),
      failed: list(object({ workflow_id: STRING, code: STRING, message: STRING })),
    },
    ['count', 'job_id']
  ) as object),
  title: 'WorkflowBulkChange',
}

const bulkRoute = ({ workflows }: RunWorkOptions): Route => ({
  method: 'POST',
  path: `${PATH}/runs/bulk`,
  summary: 'Cancel, retry or drop all runs that meet the conditions',
  description:
    "The caller's own runs; with the scope admin all. Needs at least one condition. More than 200 runs are changed in a background job.",
  scope: 'workflows',
  body: BULK_BODY,
  responses: {
    ...ok('The runs are changed, or counted.', BULK_REPLY),
    '202': { description: 'A job changes them.', schema: BULK_REPLY },
  },
  async handle({ body }, ctx) {
    const {
      action,
      dry_run: dryRun = false,
      ...given
    } = body as unknown as Conditions & { action: BulkAction; dry_run?: boolean }
    const outcome = await workflows.bulk({ action, filter: filterOf(given), dryRun }, ctx)
    return { status: outcome.job === undefined ? 200 : 202, body: bulkRecord(outcome) }
  },
})

const bulkRecord = ({ count, job, changed, pending, failed }: BulkOutcome) => ({
  count,
  job_id: job ?? null,
  ...(changed === undefined ? {} : { changed }),
  ...(pending === undefined ? {} : { pending }),
  ...(failed === undefined ? {} : { failed: failed.map(({ run, code, message }) => ({ workflow_id: run, code, message })) }),
})

const named = {
  ...(object({
    workflow: { ...(text('Name of the workflow, or path of a file below a workflow root.') as object), maxLength: 1_000 },
  }) as object),
  additionalProperties: false,
}

const pauseRoutes = ({ workflows }: RunWorkOptions): Record<string, Route> => ({
  workflow_run_pause: {
    method: 'POST',
    path: `${PATH}/:id/pause`,
    summary: 'Pause a run: its running nodes end, and no further node starts',
    scope: 'workflows',
    responses: ok('The run. paused_at is null while a node still runs, after 10 s.', RUN_STATUS),
    handle: async ({ params }, ctx) => ({ body: statusBody(await workflows.pause(params.id!, ctx)) }),
  },
  workflow_run_resume: {
    method: 'POST',
    path: `${PATH}/:id/resume`,
    summary: 'Let a paused run go on',
    scope: 'workflows',
    responses: ok('The run.', RUN_STATUS),
    handle: async ({ params }, ctx) => ({ body: statusBody(await workflows.resume(params.id!, ctx)) }),
  },
  workflow_pause: {
    method: 'POST',
    path: `${PATH}/pause`,
    summary: 'Pause a workflow: new runs are stored and wait, running ones go on',
    scope: 'admin',
    body: named,
    responses: ok('It is paused.', object({ success: BOOLEAN })),
    async handle({ body }, ctx) {
      await workflows.pauseWorkflow((body as unknown as { readonly workflow: string }).workflow, ctx)
      return { body: { success: true } }
    },
  },
  workflow_resume: {
    method: 'POST',
    path: `${PATH}/resume`,
    summary: 'Resume a workflow, and start the runs that waited',
    scope: 'admin',
    body: named,
    responses: ok('It is resumed.', object({ success: BOOLEAN, released: said(INTEGER, 'Number of runs that waited.') })),
    async handle({ body }, ctx) {
      const released = await workflows.resumeWorkflow((body as unknown as { readonly workflow: string }).workflow, ctx)
      return { body: { success: true, released } }
    },
  },
})

const resultRoute = ({ workflows, http }: RunWorkOptions): Route => ({
  method: 'GET',
  path: `${PATH}/:id/result`,
  summary: 'Read the result of a completed run, or the output of a step, as a file',
  description: 'Supports the header Range with one range of bytes, and If-Range with the ETag of an earlier response.',
  scope: 'workflows',
  query: object({ step: { ...(text('The step whose output to read.') as object), maxLength: 1_000 } }, []),
  responses: {
    ...ok('The value as JSON.', {}),
    '206': { description: 'The bytes of the range; the header Content-Range has its position and the size.', schema: STRING },
    '416': { description: 'The range begins after the end of the value.' },
  },
  async handle({ params, query, headers }, ctx) {
    const value = await valueOf(workflows, params.id!, query.step, ctx)
    const reply = fileReply(value, headers)
    if (reply.status !== 416) return reply
    return { ...reply, body: (await http.explain(toPublicError(rangeInvalid()), ctx)).record }
  },
})

const rangeInvalid = () =>
  svcError('INVALID_VALUE', 'Range begins after the end of the value', {
    details: { field: 'Range', reason: 'begins after the end of the value' },
  })

/** The result of a run or the output of a step. Throws INVALID_VALUE if there is none. */
async function valueOf(workflows: Workflows, id: string, step: string | undefined, ctx: CallContext): Promise<Json> {
  if (step === undefined) {
    const { status, result = null } = await workflows.get(id, ctx)
    if (status === 'completed') return result
    throw noValue('workflow_id', id, `has no result: its status is ${status}`)
  }
  const found = (await workflows.steps(id, ctx)).find(item => item.step === step)
  if (!found) throw noValue('step', step, 'not found')
  if (found.status === 'completed') return found.output ?? null
  throw noValue('step', step, `has no output: its status is ${found.status}`)
}

const noValue = (field: string, value: string, reason: string) =>
  svcError('INVALID_VALUE', `the ${field === 'step' ? 'step' : 'run'} ${reason === 'not found' ? 'does not exist' : reason}`, {
    details: { field, value: value.slice(0, 200), reason },
  })
