import { type CallContext, defineService, defineSlot, type Principal } from '@svc/core'
import type { PublicError } from './chat.ts'
import type { Job } from './jobs.ts'
import type { Json } from './store.ts'

/**
 * What happens with ticks that no worker handled within a minute, because no server ran. `none`: they are dropped. `one`: the
 * last of them starts its job. `all`: each does, but only the last `schedules.catch_up_limit` ones.
 */
export type CatchUp = 'none' | 'one' | 'all'

/**
 * What happens at a tick while the job of an earlier tick is queued or running. `skip`: the tick starts nothing. `queue`: its job
 * starts when the earlier one has ended; at most one waits. `cancel`: the earlier job is cancelled. `allow`: both run.
 */
export type Overlap = 'skip' | 'queue' | 'cancel' | 'allow'

/** When to start which job. Exactly one of `cron` and `everyMs` is set. All members are data. */
export interface ScheduleSpec {
  readonly description?: string
  /**
   * A cron expression with five fields (minute, hour, day of month, month, day of week) or six (seconds first), or `@hourly`,
   * `@daily`, `@weekly`, `@monthly`, `@yearly`. Days of month and week both restrict: either one matches, as in cron.
   */
  readonly cron?: string
  /** Milliseconds between ticks, at least 1000. Ticks are multiples of it since 1970 (UTC), so a restart does not move them. */
  readonly everyMs?: number
  /**
   * IANA time zone of `cron`. Default: `schedules.time_zone`. When clocks go forward, a job at a skipped time starts right after
   * the gap; a job with a wildcard or step in its minutes or hours leaves the gap out. When clocks go back, a job at a fixed time
   * starts once, at the first occurrence; a job with a wildcard or step starts in both hours.
   */
  readonly timeZone?: string
  /** Maximum random delay of each job after its tick, in milliseconds; at most a day. Default: 0. */
  readonly jitterMs?: number
  /** Default: `none`. */
  readonly catchUp?: CatchUp
  /** Default: `skip`. */
  readonly overlap?: Overlap
  readonly job: { readonly kind: string; readonly input?: Json }
}

/**
 * Schedules of a plugin by name: they exist while the plugin is loaded. They start job kinds of the same plugin, and those whose
 * `scope` needs none of an administrator. The configuration can define a schedule with the same name in place of it.
 */
export const PluginSchedules = defineSlot<ScheduleSpec>('plugin_schedules', { api: 1, methods: {} })

/** A schedule of a workflow definition, and the principal that its jobs run as. */
export interface DefinedSchedule {
  readonly spec: ScheduleSpec
  readonly principal: Principal
}

/**
 * Schedules of workflow definitions, by name: `workflow.<workflow>`. The workflow engine adds one while a definition with a
 * `schedule` is loaded. Callers and plugins cannot use these names; the configuration can define such a schedule in place of it.
 */
export const WorkflowSchedules = defineSlot<DefinedSchedule>('workflow_schedules', { api: 1, methods: {}, local: true })

/** A handled tick. Times are Unix milliseconds. */
export interface ScheduleTick {
  readonly tick: number
  /** When a worker handled it. */
  readonly at: number
  /** The id of its job. */
  readonly job?: string
  /** Why it started none. */
  readonly skipped?: 'overlap'
  /** Reason why svc added no job. */
  readonly error?: PublicError
}

/** A schedule and its state. */
export interface Schedule extends ScheduleSpec {
  readonly name: string
  /** Where it is defined: in the configuration, by a plugin, in a workflow definition, or with `Schedules.add`. */
  readonly origin: 'configuration' | 'plugin' | 'workflow' | 'added'
  /** The id of the principal that its jobs run as. */
  readonly owner: string
  readonly isPaused: boolean
  /** The next tick in Unix milliseconds. Absent while it is paused. */
  readonly next?: number
  readonly last?: ScheduleTick
}

/**
 * Starts jobs by the clock. Each tick starts its job once in the whole cluster, without a leader: the record of the tick and its
 * job are one batch. A principal sees only its own schedules; the scope `admin` sees all. Errors: SCHEDULE_UNKNOWN (also for
 * those of others), SCHEDULE_EXISTS, SCHEDULE_INVALID (`details: {field, reason, position?}`: the position in the cron expression,
 * from 1), SCHEDULE_FIXED (only `added` ones can be removed), and those of `Jobs.add`.
 */
export interface Schedules {
  /** By name. */
  list(ctx: CallContext): Promise<readonly Schedule[]>
  get(name: string, ctx: CallContext): Promise<Schedule>
  /** Adds a schedule. Its jobs run as the principal of the caller. `name`: `[a-z][a-z0-9_.-]*`, at most 64 characters, not `workflow.…`. */
  add(name: string, spec: ScheduleSpec, ctx: CallContext): Promise<Schedule>
  /** Stops its ticks until `resume`. Jobs that are queued or running continue. */
  pause(name: string, ctx: CallContext): Promise<Schedule>
  /** Continues with the next tick. Ticks of the pause are not caught up. */
  resume(name: string, ctx: CallContext): Promise<Schedule>
  /** Removes an added schedule and the records of its ticks. Its jobs stay. */
  remove(name: string, ctx: CallContext): Promise<void>
  /** Starts its job now, in addition to its ticks, whatever its overlap policy. */
  run(name: string, ctx: CallContext): Promise<Job>
  /** The last handled ticks, newest first; at most `limit` (1 to 100). */
  ticks(name: string, limit: number, ctx: CallContext): Promise<readonly ScheduleTick[]>
  /** Checks the timing of a schedule, and returns its next `count` (1 to 100) ticks after `from`, in Unix milliseconds. */
  preview(
    spec: ScheduleSpec,
    range: { readonly from: number; readonly count: number; readonly checksJob?: boolean },
    ctx: CallContext
  ): Promise<readonly number[]>
}

export const Schedules = defineService<Schedules>('schedules', {
  api: 1,
  methods: {
    list: 'call',
    get: 'call',
    add: 'call',
    pause: 'call',
    resume: 'call',
    remove: 'call',
    run: 'call',
    ticks: 'call',
    preview: 'call',
  },
})
