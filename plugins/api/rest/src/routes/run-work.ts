import { type CallContext, type JsonSchema, svcError } from '@svc/core'
import type { BulkAction, BulkOutcome, Route, Run, RunFilter, RunQuery, RunStatus, Workflows } from '@svc/core/contracts'
import {
  BOOLEAN,
  INTEGER,
  list,
  nullable,
  object,
  ok,
  runRecord,
  runReply,
  statusRecord,
  stepRecord,
  STRING,
  text,
  words,
} from '@svc/api-types'
import { keyOf, RUN_REPLY, RUN_STATUS, RUN_STEP, RUN_SUMMARY, timeOf, TIME_GIVEN, waitOf } from '../run-schemas.ts'

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
  { ...conditions, status: words('running', 'completed', 'failed'), ...times('created'), ...paging },
  []
)

/** The filter in a query or body. Throws INVALID_VALUE. */
function filterOf({ workflow, status, failure_code: errorCode, owner, since, until }: Readonly<Record<string, unknown>>) {
  const filter = { workflow, status, errorCode, owner, since: timeOf('since', since), until: timeOf('until', until) }
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)) as RunFilter & {
    readonly status?: RunStatus
  }
}

/** The query of a list of runs for the service. Throws INVALID_VALUE. */
export const queryOf = (query: Readonly<Record<string, string>>): RunQuery => ({
  ...filterOf(query),
  limit: query.limit === undefined ? PAGE : Number(query.limit),
  ...(query.cursor === undefined ? {} : { cursor: query.cursor }),
})

interface RunWorkOptions {
  readonly workflows: Workflows
}

/** Routes for operators of runs: dead letters, and changes of many runs. */
export const createRunWorkRoutes = (options: RunWorkOptions): Record<string, Route> => ({
  ...letterRoutes(options),
  workflow_runs_bulk: bulkRoute(options),
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
      return { body: { run: statusRecord(run), failed_steps: failed.map(stepRecord) } }
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
      const { id } = await workflows.retry(params.id!, { once: true, ...(key === undefined ? {} : { idempotencyKey: key }) }, ctx)
      return { body: runReply(await workflows.settled(id, waitOf(headers), ctx)) }
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
    const { action, dry_run: dryRun = false, ...given } = body as unknown as { action: BulkAction; dry_run?: boolean }
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
