import { INTEGER, list, nullable, object, ok, STRING, text, TIME, words } from '@svc/api-types'
import type { JsonSchema } from '@svc/core'
import type { CatchUp, Json, Overlap, Route, Schedule, Schedules, ScheduleSpec, ScheduleTick } from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'
import { JOB, jobRecord } from './jobs.ts'

const PATH = '/api/v1/schedules'
const [TICKS, MOST_TICKS, MOST_PREVIEWED] = [20, 100, 100]
const CATCH_UPS = ['none', 'one', 'all'] as const satisfies readonly CatchUp[]
const OVERLAPS = ['skip', 'queue', 'cancel', 'allow'] as const satisfies readonly Overlap[]
const DAY_MS = 86_400_000
const LONGEST_MS = 366 * DAY_MS

const nullableTime: JsonSchema = { type: ['string', 'null'], format: 'date-time' }
const described = (schema: JsonSchema, description: string): JsonSchema => ({ ...(schema as object), description })
const ERROR = object({ code: STRING, message: STRING, details: { type: 'object' } })

const TICK: JsonSchema = {
  ...(object({
    tick: TIME,
    at: described(TIME, 'When a worker handled it.'),
    job: described(nullable('string'), 'The id of its job.'),
    skipped: described({ type: ['string', 'null'], enum: ['overlap', null] }, 'Why it started no job.'),
    error: { oneOf: [ERROR, { type: 'null' }], description: 'Reason why svc added no job.' },
  }) as object),
  title: 'ScheduleTick',
}

const timing = {
  description: { type: 'string', maxLength: 500, description: 'Description shown in lists.' },
  cron: { type: 'string', minLength: 1, maxLength: 200, description: 'A cron expression with five or six fields, or `@daily`.' },
  every_ms: {
    type: 'integer',
    minimum: 1_000,
    maximum: LONGEST_MS,
    description: 'Milliseconds between ticks, in place of `cron`.',
  },
  time_zone: { type: 'string', minLength: 1, maxLength: 100, description: 'The IANA time zone of `cron`.' },
  jitter_ms: { type: 'integer', minimum: 0, maximum: DAY_MS, description: 'Maximum random delay of each job.' },
  catch_up: described(words(...CATCH_UPS), 'Which missed ticks start a job when a server runs again. Default: none.'),
  overlap: described(words(...OVERLAPS), 'What happens while the earlier job is not finished. Default: skip.'),
} as const satisfies Record<string, JsonSchema>

const SCHEDULE_FIELDS = {
  name: STRING,
  description: nullable('string'),
  cron: nullable('string'),
  every_ms: nullable('integer'),
  time_zone: nullable('string'),
  jitter_ms: INTEGER,
  catch_up: words(...CATCH_UPS),
  overlap: words(...OVERLAPS),
  job: object({ kind: STRING, input: {} }, ['kind']),
  origin: described(
    words('configuration', 'plugin', 'workflow', 'added'),
    'Where it is defined. Only an added one can be removed.'
  ),
  owner: described(STRING, 'The id of the principal that its jobs run as.'),
  is_paused: { type: 'boolean' },
  next: described(nullableTime, 'The next tick; null while it is paused.'),
  last: { oneOf: [TICK, { type: 'null' }], description: 'The last handled tick.' },
} as const satisfies Record<string, JsonSchema>
const SCHEDULE: JsonSchema = { ...(object(SCHEDULE_FIELDS) as object), title: 'Schedule' }
const SCHEDULE_DETAIL: JsonSchema = {
  ...(object({ ...SCHEDULE_FIELDS, ticks: described(list(TICK), 'The last handled ticks, newest first.') }) as object),
  title: 'ScheduleDetail',
}

const closed = (properties: Record<string, JsonSchema>, required: readonly string[]) => ({
  ...(object(properties, required) as object),
  additionalProperties: false,
})
const JOB_BODY = closed({ kind: text('The job kind.'), input: { description: 'The input of its jobs. Default: null.' } }, [
  'kind',
])

interface TimingBody {
  readonly description?: string
  readonly cron?: string
  readonly every_ms?: number
  readonly time_zone?: string
  readonly jitter_ms?: number
  readonly catch_up?: CatchUp
  readonly overlap?: Overlap
}

/** Routes for schedules. The service shows a principal its own schedules, and with the scope `admin` all. */
export const createScheduleRoutes = (schedules: Schedules, publish: Publish): Record<string, Route> => ({
  ...readRoutes(schedules),
  ...changeRoutes(schedules, publish),
  schedule_pause: switchRoute('pause', 'Pause a schedule', schedules, publish),
  schedule_resume: switchRoute('resume', 'Resume a paused schedule with its next tick', schedules, publish),
})

const readRoutes = (schedules: Schedules): Record<string, Route> => ({
  schedules: {
    method: 'GET',
    path: PATH,
    summary: 'List the schedules by name',
    scope: 'read',
    responses: ok('The schedules.', object({ schedules: list(SCHEDULE) })),
    handle: async (_request, ctx) => ({ body: { schedules: (await schedules.list(ctx)).map(scheduleRecord) } }),
  },
  schedule: {
    method: 'GET',
    path: `${PATH}/:name`,
    summary: 'Read a schedule with its last ticks',
    scope: 'read',
    query: object(
      { ticks: { type: 'integer', minimum: 1, maximum: MOST_TICKS, description: `Maximum ticks; default ${TICKS}.` } },
      []
    ),
    responses: ok('The schedule.', SCHEDULE_DETAIL),
    async handle({ params, query }, ctx) {
      const schedule = await schedules.get(params.name!, ctx)
      const ticks = await schedules.ticks(params.name!, query.ticks === undefined ? TICKS : Number(query.ticks), ctx)
      return { body: { ...scheduleRecord(schedule), ticks: ticks.map(tickRecord) } }
    },
  },
  schedule_preview: {
    method: 'POST',
    path: `${PATH}/preview`,
    summary: 'Check a schedule and list its next ticks',
    description: 'Stores nothing.',
    scope: 'read',
    body: closed(
      {
        ...timing,
        job: described(JOB_BODY, 'Checks kind and input, too.'),
        count: { type: 'integer', minimum: 1, maximum: MOST_PREVIEWED, description: 'Number of ticks; default 5.' },
      },
      []
    ),
    responses: ok('The next ticks.', object({ ticks: list(TIME) })),
    async handle({ body }, ctx) {
      const { count = 5, job, ...given } = body as TimingBody & { readonly count?: number; readonly job?: ScheduleSpec['job'] }
      const spec = specOf(given, job ?? { kind: 'preview' })
      const ticks = await schedules.preview(spec, { from: Date.now(), count, checksJob: job !== undefined }, ctx)
      return { body: { ticks: ticks.map(time) } }
    },
  },
})

const changeRoutes = (schedules: Schedules, publish: Publish): Record<string, Route> => ({
  schedule_add: {
    method: 'POST',
    path: PATH,
    summary: 'Add a schedule; its jobs run as the caller',
    scope: 'admin',
    body: closed({ name: { ...(text('The name.') as object), maxLength: 64 }, ...timing, job: JOB_BODY }, ['name', 'job']),
    responses: { '201': { description: 'The schedule.', schema: SCHEDULE } },
    async handle({ body }, ctx) {
      const { name, job, ...given } = body as unknown as TimingBody & { readonly name: string; readonly job: ScheduleSpec['job'] }
      const schedule = await schedules.add(name, specOf(given, job), ctx)
      publish({ type: 'schedule_added', subject: `schedules/${name}`, after: settingsOf(schedule) }, ctx)
      return { status: 201, body: scheduleRecord(schedule) }
    },
  },
  schedule_remove: {
    method: 'DELETE',
    path: `${PATH}/:name`,
    summary: 'Remove an added schedule; its jobs stay',
    scope: 'admin',
    responses: ok('The schedule is removed.', object({ success: { type: 'boolean' } })),
    async handle({ params }, ctx) {
      const before = await schedules.get(params.name!, ctx)
      await schedules.remove(params.name!, ctx)
      publish({ type: 'schedule_removed', subject: `schedules/${before.name}`, before: settingsOf(before) }, ctx)
      return { body: { success: true } }
    },
  },
  schedule_run: {
    method: 'POST',
    path: `${PATH}/:name/run`,
    summary: 'Start the job of a schedule now, in addition to its ticks',
    scope: 'admin',
    responses: { '201': { description: 'The job is stored, and will run.', schema: JOB } },
    async handle({ params }, ctx) {
      const job = await schedules.run(params.name!, ctx)
      publish({ type: 'schedule_run', subject: `schedules/${params.name!}`, after: { job: job.id } }, ctx)
      return { status: 201, body: jobRecord(job) }
    },
  },
})

const switchRoute = (what: 'pause' | 'resume', summary: string, schedules: Schedules, publish: Publish): Route => ({
  method: 'POST',
  path: `${PATH}/:name/${what}`,
  summary,
  scope: 'admin',
  responses: ok('The schedule.', SCHEDULE),
  async handle({ params }, ctx) {
    const before = await schedules.get(params.name!, ctx)
    const after = await schedules[what](params.name!, ctx)
    const paused = ({ isPaused }: Schedule) => ({ is_paused: isPaused })
    publish({ type: `schedule_${what}d`, subject: `schedules/${after.name}`, before: paused(before), after: paused(after) }, ctx)
    return { body: scheduleRecord(after) }
  },
})

const time = (ms: number) => new Date(ms).toISOString()

const specOf = (given: TimingBody, job: ScheduleSpec['job']): ScheduleSpec => {
  const { every_ms: everyMs, time_zone: timeZone, jitter_ms: jitterMs, catch_up: catchUp, ...same } = given
  const named = { ...same, everyMs, timeZone, jitterMs, catchUp }
  return { ...(Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined)) as object), job }
}

/** What a person has set. The input of its jobs can contain anything, so events do not have it. */
const settingsOf = ({ cron, everyMs, timeZone, jitterMs, catchUp, overlap, job }: Schedule): { [member: string]: Json } => ({
  cron: cron ?? null,
  every_ms: everyMs ?? null,
  time_zone: timeZone ?? null,
  jitter_ms: jitterMs ?? 0,
  catch_up: catchUp ?? 'none',
  overlap: overlap ?? 'skip',
  kind: job.kind,
})

const tickRecord = ({ tick, at, job, skipped, error }: ScheduleTick) => ({
  tick: time(tick),
  at: time(at),
  job: job ?? null,
  skipped: skipped ?? null,
  error: error ? ({ ...error } as unknown as Json) : null,
})

function scheduleRecord(schedule: Schedule) {
  const { name, description, job, origin, owner, isPaused, next, last } = schedule
  const { kind: _kind, ...settings } = settingsOf(schedule)
  return {
    name,
    description: description ?? null,
    ...settings,
    job: { kind: job.kind, ...(job.input === undefined ? {} : { input: job.input }) },
    origin,
    owner,
    is_paused: isPaused,
    next: next === undefined ? null : time(next),
    last: last === undefined ? null : tickRecord(last),
  }
}
