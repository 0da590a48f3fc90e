import { schema } from '@svc/core'

/** Settings of one kind; they take precedence over those of its plugin. */
interface KindSettings {
  concurrency?: number
  timeout_s?: number
  attempts?: number
}

export interface JobsConfig {
  execute?: boolean
  concurrency: number
  timeout_s: number
  attempts: number
  max_queued: number
  drain_s: number
  grace_s: number
  keep_completed_days: number
  keep_failed_days: number
  kinds: Record<string, KindSettings>
}

const whole = (minimum: number, maximum: number, description: string) => ({ type: 'integer', minimum, maximum, description })
/** Setting the time limit higher would overflow a timer. */
const LONGEST_S = 7 * 86_400

const KIND = {
  type: 'object',
  additionalProperties: false,
  properties: {
    concurrency: whole(1, 1000, 'Maximum number of jobs of this kind at the same time, over all workers'),
    timeout_s: whole(1, LONGEST_S, 'Time limit of an attempt in seconds'),
    attempts: whole(1, 100, 'Maximum number of attempts'),
  },
}

export const JOBS_CONFIG = schema<JobsConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    execute: {
      type: 'boolean',
      description: 'Execute jobs in this process. Default: only in the workers of a server',
    },
    concurrency: { ...whole(1, 1000, 'Maximum number of jobs that a worker executes at the same time'), default: 8 },
    timeout_s: { ...whole(1, LONGEST_S, 'Time limit of an attempt in seconds, for kinds without their own'), default: 3600 },
    attempts: { ...whole(1, 100, 'Maximum number of attempts, for kinds without their own'), default: 5 },
    max_queued: { ...whole(1, 1_000_000, 'Maximum number of queued jobs of a principal, approximately'), default: 50_000 },
    drain_s: {
      ...whole(0, 3600, 'Seconds that running jobs have to finish at shutdown and reload, before svc puts them back'),
      default: 10,
    },
    grace_s: {
      ...whole(1, 600, 'Seconds that a job has to end after its signal aborted, before svc gives it up'),
      default: 10,
    },
    keep_completed_days: { ...whole(0, 3650, 'Days for which svc keeps completed and cancelled jobs'), default: 7 },
    keep_failed_days: { ...whole(0, 3650, 'Days for which svc keeps failed jobs'), default: 30 },
    kinds: { type: 'object', additionalProperties: KIND, default: {}, description: 'Settings for single kinds of jobs' },
  },
})
