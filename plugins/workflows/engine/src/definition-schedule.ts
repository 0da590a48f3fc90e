import { asSvcError } from '@svc/core'
import type { Json, ScheduleSpec, WorkflowSchedule } from '@svc/core/contracts'
import { scheduleInvalid, timingOf } from '@svc/plugin-kit/schedule-timing'
import { durationMs } from '@svc/workflow-lang'

/** The job kind that starts a run. */
export const RUN_KIND = 'workflows.run'
const DAY_MS = 86_400_000

/** The input of a job of this kind. */
export interface RunJob {
  readonly workflow: string
  readonly input?: Json
  readonly parameters?: Json
  readonly wait?: boolean
}

/** A schedule in the form of the service `schedules`. Runs that can overlap are not waited for. */
export function specOf(workflow: string, schedule: WorkflowSchedule): ScheduleSpec {
  const { input, parameters, every, jitter, time_zone, catch_up, owner: _owner, ...same } = schedule
  const job: RunJob = {
    workflow,
    ...(input === undefined ? {} : { input }),
    ...(parameters === undefined ? {} : { parameters }),
    ...(same.overlap === 'allow' ? { wait: false } : {}),
  }
  return {
    ...same,
    ...(every === undefined ? {} : { everyMs: durationMs(every)! }),
    ...(jitter === undefined ? {} : { jitterMs: durationMs(jitter)! }),
    ...(time_zone === undefined ? {} : { timeZone: time_zone }),
    ...(catch_up === undefined ? {} : { catchUp: catch_up }),
    job: { kind: RUN_KIND, input: job as unknown as Json },
  }
}

/** What the shape of a schedule cannot say: whether its cron expression, zone and durations are valid. */
export function scheduleProblem(schedule: WorkflowSchedule) {
  try {
    const { jitterMs = 0, ...timing } = specOf('', schedule)
    timingOf(timing, 'UTC')
    if (!(jitterMs >= 0 && jitterMs <= DAY_MS)) throw scheduleInvalid('jitter', 'must be from 0 to one day')
    return undefined
  } catch (error) {
    const { message, details, hint } = asSvcError(error, 'SCHEDULE_INVALID')
    const field = typeof details?.field === 'string' ? details.field : 'cron'
    const about = hint === undefined ? {} : { hint }
    return { field, message: message.startsWith(`${field} `) ? message.slice(field.length + 1) : message, ...about }
  }
}
