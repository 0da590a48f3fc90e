import { schema } from '@svc/core'
import type { CatchUp, Json, Overlap, ScheduleSpec } from '@svc/core/contracts'

/** A schedule in the configuration. */
export interface ScheduleEntry {
  description?: string
  cron?: string
  every?: string
  time_zone?: string
  jitter?: string
  catch_up?: CatchUp
  overlap?: Overlap
  kind: string
  input?: Json
}

export interface SchedulesConfig {
  execute?: boolean
  time_zone: string
  catch_up_limit: number
  entries: Record<string, ScheduleEntry>
}

export const CATCH_UPS = ['none', 'one', 'all'] as const satisfies readonly CatchUp[]
export const OVERLAPS = ['skip', 'queue', 'cancel', 'allow'] as const satisfies readonly Overlap[]

const DURATION = '^[0-9]{1,9}(ms|s|m|h|d)$'
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `90s` in milliseconds; undefined for another text. */
export function durationMs(text: string): number | undefined {
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text)
  return match ? Number(match[1]) * UNITS[match[2]!]! : undefined
}

const duration = (description: string) => ({
  type: 'string',
  pattern: DURATION,
  patternHint: 'must be a duration such as 30s, 15m, 2h, 1d',
  description,
})

const ENTRY = {
  type: 'object',
  additionalProperties: false,
  required: ['kind'],
  properties: {
    description: { type: 'string', description: 'Description shown in lists' },
    cron: { type: 'string', description: 'Cron expression with five or six fields: `0 3 * * *`' },
    every: duration('Interval, at least 1s, instead of `cron`'),
    time_zone: { type: 'string', description: 'IANA time zone of `cron`' },
    jitter: duration('Each job starts up to this time after its tick'),
    catch_up: { enum: CATCH_UPS, description: 'Which missed ticks start a job when a server runs again' },
    overlap: { enum: OVERLAPS, description: 'What to do at a tick while the earlier job is not finished' },
    kind: { type: 'string', minLength: 1, description: 'Job kind to start' },
    input: { description: 'Input of the job' },
  },
}

export const SCHEDULES_CONFIG = schema<SchedulesConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    execute: { type: 'boolean', description: 'Handle ticks in this process. Default: only in the workers of a server' },
    time_zone: { type: 'string', default: 'UTC', description: 'IANA time zone of schedules without one' },
    catch_up_limit: {
      type: 'integer',
      minimum: 1,
      maximum: 1000,
      default: 100,
      description: 'Maximum number of missed ticks for which `catch_up: all` starts jobs; svc drops older ticks',
    },
    entries: {
      type: 'object',
      propertyNames: { pattern: '^[a-z][a-z0-9_.-]{0,63}$' },
      additionalProperties: ENTRY,
      default: {},
      description: 'Schedules by name',
    },
  },
})

/** The schedule of a configuration entry. The schema has checked the durations. */
export function specOf({ every, jitter, time_zone, catch_up, kind, input, ...entry }: ScheduleEntry): ScheduleSpec {
  const { description, cron, overlap } = entry
  return {
    ...(description === undefined ? {} : { description }),
    ...(cron === undefined ? {} : { cron }),
    ...(every === undefined ? {} : { everyMs: durationMs(every)! }),
    ...(time_zone === undefined ? {} : { timeZone: time_zone }),
    ...(jitter === undefined ? {} : { jitterMs: durationMs(jitter)! }),
    ...(catch_up === undefined ? {} : { catchUp: catch_up }),
    ...(overlap === undefined ? {} : { overlap }),
    job: { kind, ...(input === undefined ? {} : { input }) },
  }
}
