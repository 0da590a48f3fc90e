import type {
  CatchUp,
  Job,
  Overlap,
  PublicError,
  Schedule,
  Schedules,
  ScheduleSpec,
  ScheduleTick,
  ServerClient,
} from '@svc/core/contracts'
import { definedOf } from '@svc/plugin-kit'

/** The part of the service that commands use. Of the job of `run`, they show the id, the kind and the state. */
export interface ManagedSchedules extends Pick<Schedules, 'list' | 'add' | 'pause' | 'resume' | 'remove' | 'preview'> {
  run(...asked: Parameters<Schedules['run']>): Promise<Pick<Job, 'id' | 'kind' | 'state'>>
}

const PATH = '/api/v1/schedules'

/** A schedule as the API shows it: absent members are null, times are text. */
interface ScheduleShown {
  readonly name: string
  readonly description: string | null
  readonly cron: string | null
  readonly every_ms: number | null
  readonly time_zone: string | null
  readonly jitter_ms: number
  readonly catch_up: CatchUp
  readonly overlap: Overlap
  readonly job: ScheduleSpec['job']
  readonly origin: Schedule['origin']
  readonly owner: string
  readonly is_paused: boolean
  readonly next: string | null
  readonly last: TickShown | null
}

interface TickShown {
  readonly tick: string
  readonly at: string
  readonly job: string | null
  readonly skipped: 'overlap' | null
  readonly error: PublicError | null
}

/** The schedules of a server over its API, which checks the caller. */
export const remoteSchedules = (server: ServerClient): ManagedSchedules => ({
  async list() {
    const { schedules } = await server.request<{ schedules: readonly ScheduleShown[] }>('GET', PATH)
    return schedules.map(scheduleOf)
  },
  add: async (name, spec) => scheduleOf(await server.request('POST', PATH, { body: { name, ...bodyOf(spec) } })),
  pause: async name => scheduleOf(await server.request('POST', `${pathOf(name)}/pause`)),
  resume: async name => scheduleOf(await server.request('POST', `${pathOf(name)}/resume`)),
  remove: name => server.request('DELETE', pathOf(name)),
  run: name => server.request('POST', `${pathOf(name)}/run`),
  async preview(spec, { count }) {
    const body = { ...bodyOf(spec), count }
    const { ticks } = await server.request<{ ticks: readonly string[] }>('POST', `${PATH}/preview`, { body })
    return ticks.map(Date.parse)
  },
})

const pathOf = (name: string) => `${PATH}/${encodeURIComponent(name)}`

const bodyOf = ({ everyMs, timeZone, jitterMs, catchUp, ...spec }: ScheduleSpec) => ({
  ...spec,
  ...definedOf({ every_ms: everyMs, time_zone: timeZone, jitter_ms: jitterMs, catch_up: catchUp }),
})

const time = (text: string | null) => (text === null ? undefined : Date.parse(text))

const scheduleOf = (schedule: ScheduleShown): Schedule => ({
  name: schedule.name,
  ...definedOf({
    description: schedule.description ?? undefined,
    cron: schedule.cron ?? undefined,
    everyMs: schedule.every_ms ?? undefined,
    timeZone: schedule.time_zone ?? undefined,
  }),
  jitterMs: schedule.jitter_ms,
  catchUp: schedule.catch_up,
  overlap: schedule.overlap,
  job: schedule.job,
  origin: schedule.origin,
  owner: schedule.owner,
  isPaused: schedule.is_paused,
  ...definedOf({ next: time(schedule.next), last: schedule.last ? tickOf(schedule.last) : undefined }),
})

const tickOf = ({ tick, at, job, skipped, error }: TickShown): ScheduleTick => ({
  tick: Date.parse(tick),
  at: Date.parse(at),
  ...definedOf({ job: job ?? undefined, skipped: skipped ?? undefined, error: error ?? undefined }),
})
