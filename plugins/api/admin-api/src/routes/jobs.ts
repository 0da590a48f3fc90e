import { INTEGER, list, nullable, object, ok, STRING, text, TIME, words } from '@svc/api-types'
import type { JsonSchema } from '@svc/core'
import type { Job, JobDetail, JobKindRecord, JobLogEntry, JobRequest, Jobs, JobState, Json, Route } from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'

const PATH = '/api/v1/jobs'
const [PAGE, MOST_LISTED, MOST_ENTRIES] = [50, 200, 1_000]
const STATES = ['queued', 'running', 'completed', 'failed', 'cancelled'] as const satisfies readonly JobState[]

const ANY: JsonSchema = {}
const nullableTime: JsonSchema = { type: ['string', 'null'], format: 'date-time' }
const jobFields = {
  id: STRING,
  kind: STRING,
  state: { ...(words(...STATES) as object), description: 'A failed job is a dead letter.' },
  owner: { ...(STRING as object), description: 'The id of the principal that added it.' },
  created_at: TIME,
  due_at: {
    ...(TIME as object),
    description: 'The time at which the next attempt is due. For an ended job: the time at which its last attempt was due.',
  },
  attempts: INTEGER,
  max_attempts: INTEGER,
  group: nullable('string'),
  schedule: {
    oneOf: [object({ name: STRING, tick: TIME }), { type: 'null' }],
    description: 'The tick of a schedule that started it.',
  },
  progress: {
    oneOf: [object({ progress: { type: 'number' }, total: { type: 'number' }, message: STRING }, ['progress']), { type: 'null' }],
  },
  is_cancelling: { type: 'boolean' },
  started_at: nullableTime,
  finished_at: nullableTime,
  error: { oneOf: [object({ code: STRING, message: STRING, details: { type: 'object' } }), { type: 'null' }] },
} as const satisfies Record<string, JsonSchema>
/** The record of a job. */
export const JOB: JsonSchema = { ...(object(jobFields) as object), title: 'Job' }
const JOB_DETAIL: JsonSchema = {
  ...(object({ ...jobFields, input: ANY, result: ANY, checkpoint: ANY }, [...Object.keys(jobFields), 'input']) as object),
  title: 'JobDetail',
}
const ENTRY: JsonSchema = {
  ...(object({ at: TIME, attempt: INTEGER, level: words('debug', 'info', 'warning', 'error'), message: STRING }) as object),
  title: 'JobLogEntry',
}
const KIND: JsonSchema = {
  ...(object({
    name: STRING,
    description: STRING,
    plugin: { ...(STRING as object), description: 'The package that adds the kind.' },
    concurrency: { ...(nullable('integer') as object), description: 'Maximum running jobs, over all workers; null: no limit.' },
    timeout_ms: { ...(INTEGER as object), description: 'Time limit of an attempt.' },
    attempts: INTEGER,
    is_internal: { type: 'boolean', description: 'Only its plugin adds its jobs.' },
    can_start: { type: 'boolean', description: 'Whether the caller can add jobs and schedules of the kind.' },
    scope: { ...(nullable('string') as object), description: 'A scope that can, beside admin.' },
    input: { description: 'JSON Schema of the input; null: any input.' },
  }) as object),
  title: 'JobKind',
}
const pageLimit: JsonSchema = {
  type: 'integer',
  minimum: 1,
  maximum: MOST_LISTED,
  description: `Maximum entries of the page; default ${PAGE}.`,
}
const timeGiven: JsonSchema = {
  type: 'string',
  format: 'date-time',
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$',
  patternHint: 'must be a time such as 2026-01-31T12:00:00Z',
  description: 'When it starts. Default: now.',
}
const jobBody = {
  ...(object(
    {
      kind: text('The job kind.'),
      input: { description: 'The input of the kind. Default: null.' },
      due_at: timeGiven,
      group: { ...(text('Jobs of the same kind and group run one at a time.') as object), maxLength: 200 },
      key: { ...(text('A later request with this key returns the existing job.') as object), maxLength: 200 },
    },
    ['kind']
  ) as object),
  additionalProperties: false,
}

/** Routes for background jobs. The service shows a principal its own jobs, and with the scope `admin` all. */
export const createJobRoutes = (jobs: Jobs, publish: Publish): Record<string, Route> => ({
  ...readRoutes(jobs),
  ...changeRoutes(jobs, publish),
})

const readRoutes = (jobs: Jobs): Record<string, Route> => ({
  jobs: {
    method: 'GET',
    path: PATH,
    summary: 'List jobs, newest first',
    scope: 'read',
    query: object(
      {
        kind: text('Lists only jobs of this kind.'),
        state: words(...STATES),
        group: text('Lists only jobs of this group.'),
        limit: pageLimit,
        cursor: text('The next_cursor of the previous page.'),
      },
      []
    ),
    responses: ok('A page of jobs.', object({ jobs: list(JOB), next_cursor: nullable('string') })),
    async handle({ query: { kind, state, group, limit, cursor } }, ctx) {
      const page = await jobs.list(
        {
          limit: limit === undefined ? PAGE : Number(limit),
          ...(kind === undefined ? {} : { kind }),
          ...(state === undefined ? {} : { state: state as JobState }),
          ...(group === undefined ? {} : { group }),
          ...(cursor === undefined ? {} : { cursor }),
        },
        ctx
      )
      return { body: { jobs: page.jobs.map(jobRecord), next_cursor: page.next ?? null } }
    },
  },
  job_kinds: kindsRoute(jobs),
  job: {
    method: 'GET',
    path: `${PATH}/:id`,
    summary: 'Read a job with its input and result',
    scope: 'read',
    responses: ok('The job.', JOB_DETAIL),
    handle: async ({ params }, ctx) => ({ body: detailRecord(await jobs.get(params.id!, ctx)) }),
  },
  job_log: {
    method: 'GET',
    path: `${PATH}/:id/log`,
    summary: 'Read the last log entries of a job, oldest first',
    scope: 'read',
    query: object(
      { limit: { type: 'integer', minimum: 1, maximum: MOST_ENTRIES, description: `Maximum entries; default ${MOST_ENTRIES}.` } },
      []
    ),
    responses: ok('The entries.', object({ entries: list(ENTRY) })),
    async handle({ params, query: { limit } }, ctx) {
      const entries = await jobs.log(params.id!, limit === undefined ? MOST_ENTRIES : Number(limit), ctx)
      return { body: { entries: entries.map(entryRecord) } }
    },
  },
})

const kindsRoute = (jobs: Jobs): Route => ({
  method: 'GET',
  path: `${PATH}/kinds`,
  summary: 'List the job kinds with their input',
  scope: 'read',
  responses: ok('The kinds by name.', object({ kinds: list(KIND) })),
  handle: async (_request, ctx) => ({ body: { kinds: (await jobs.kinds(ctx)).map(kindRecord) } }),
})

const changeRoutes = (jobs: Jobs, publish: Publish): Record<string, Route> => ({
  job_add: {
    method: 'POST',
    path: PATH,
    summary: 'Add a job',
    scope: 'admin',
    body: jobBody,
    responses: { '201': { description: 'The job is stored, and will run.', schema: JOB } },
    async handle({ body }, ctx) {
      const { due_at: due, ...given } = body as unknown as JobRequest & { readonly due_at?: string }
      const job = await jobs.add({ ...given, ...(due === undefined ? {} : { due: Date.parse(due) }) }, ctx)
      publish({ type: 'job_added_by_api', subject: `jobs/${job.id}`, after: { kind: job.kind } }, ctx)
      return { status: 201, body: jobRecord(job) }
    },
  },
  job_cancel: changeRoute('cancel', 'Cancel a queued or running job', jobs, publish),
  job_retry: changeRoute('retry', 'Queue a failed or cancelled job again', jobs, publish),
})

const changeRoute = (what: 'cancel' | 'retry', summary: string, jobs: Jobs, publish: Publish): Route => ({
  method: 'POST',
  path: `${PATH}/:id/${what}`,
  summary,
  scope: 'admin',
  responses: ok('The job.', JOB),
  async handle({ params }, ctx) {
    const before = await jobs.get(params.id!, ctx)
    const job = await jobs[what](params.id!, ctx)
    const type = what === 'cancel' ? 'job_cancel_requested' : 'job_retry_requested'
    const hasChanged = before.finishedAt === undefined || before.state !== job.state
    if (hasChanged)
      publish({ type, subject: `jobs/${job.id}`, before: { state: before.state }, after: { state: job.state } }, ctx)
    return { body: jobRecord(job) }
  },
})

const time = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())

/** A job as the API shows it. */
export const jobRecord = (job: Job): { [member: string]: Json } => ({
  id: job.id,
  kind: job.kind,
  state: job.state,
  owner: job.owner,
  created_at: time(job.createdAt),
  due_at: time(job.due),
  attempts: job.attempts,
  max_attempts: job.maxAttempts,
  group: job.group ?? null,
  schedule: job.schedule ? { name: job.schedule.name, tick: time(job.schedule.tick) } : null,
  progress: job.progress ? { ...job.progress } : null,
  is_cancelling: job.isCancelling ?? false,
  started_at: time(job.startedAt),
  finished_at: time(job.finishedAt),
  error: job.error ? ({ ...job.error } as unknown as Json) : null,
})

const kindRecord = (kind: JobKindRecord): { [member: string]: Json } => ({
  name: kind.name,
  description: kind.description,
  plugin: kind.plugin,
  concurrency: kind.concurrency ?? null,
  timeout_ms: kind.timeoutMs,
  attempts: kind.attempts,
  is_internal: kind.isInternal,
  can_start: kind.canStart,
  scope: kind.scope ?? null,
  input: (kind.input ?? null) as Json,
})

const detailRecord = (job: JobDetail) => ({
  ...jobRecord(job),
  input: job.input,
  ...(job.result === undefined ? {} : { result: job.result }),
  ...(job.checkpoint === undefined ? {} : { checkpoint: job.checkpoint }),
})

const entryRecord = ({ at, ...entry }: JobLogEntry) => ({ at: time(at), ...entry })
