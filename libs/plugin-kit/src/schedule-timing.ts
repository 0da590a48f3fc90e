import { Cron, type CronOptions } from 'croner'
import { messageOf, nearest, svcError } from '@svc/core'
import type { ScheduleSpec } from '@svc/core/contracts'
import { definedOf } from './tools.ts'

interface Invalid {
  /** The position in the cron expression, from 1. */
  readonly position?: number
  readonly hint?: string
}

/** SCHEDULE_INVALID. */
export const scheduleInvalid = (field: string, reason: string, { position, hint }: Invalid = {}) =>
  svcError('SCHEDULE_INVALID', `${field} ${reason}${position === undefined ? '' : ` (at position ${position})`}`, {
    // clients of the API get only the details
    details: { field, reason, ...definedOf({ position, hint }) },
    ...definedOf({ hint }),
  })

/** The ticks of a schedule, in Unix milliseconds. */
export interface Timing {
  /** The first tick after a time; undefined if there is none. */
  next(after: number): number | undefined
  /** The last `count` ticks up to and including a time, newest first. */
  previous(upTo: number, count: number): number[]
}

const LONGEST_CRON = 200
const [SHORTEST_MS, LONGEST_MS] = [1_000, 366 * 86_400_000]
const FIELDS = [
  { name: 'second', values: '0-59' },
  { name: 'minute', values: '0-59' },
  { name: 'hour', values: '0-23' },
  { name: 'day of month', values: '1-31' },
  { name: 'month', values: '1-12 or JAN-DEC' },
  { name: 'day of week', values: '0-7 or SUN-SAT' },
] as const
/** Lists and ranges of fixed times count as fixed, as in Vixie cron. */
const RULES = { mode: '5-or-6-parts', fixedTimeRule: 'no-wildcard', paused: true } as const satisfies CronOptions

/** Compiles the timing of a schedule. Throws SCHEDULE_INVALID. */
export function timingOf({ cron, everyMs, timeZone }: Partial<ScheduleSpec>, defaultZone: string): Timing {
  if ((cron === undefined) === (everyMs === undefined))
    throw scheduleInvalid('schedule', 'must have either a cron expression or an interval')
  if (cron !== undefined) return cronTiming(cron, timeZone ?? defaultZone)
  if (timeZone !== undefined)
    throw scheduleInvalid('time_zone', 'has no meaning for an interval', { hint: 'Remove it, or use a cron expression' })
  return intervalTiming(everyMs!)
}

function intervalTiming(everyMs: number): Timing {
  if (!Number.isSafeInteger(everyMs) || everyMs < SHORTEST_MS || everyMs > LONGEST_MS)
    throw scheduleInvalid('every', `must be from 1 second to 366 days, was ${String(everyMs)} ms`)
  const last = (upTo: number) => Math.floor(upTo / everyMs) * everyMs
  return {
    next: after => last(after) + everyMs,
    previous: (upTo, count) => Array.from({ length: count }, (_, at) => last(upTo) - at * everyMs).filter(tick => tick >= 0),
  }
}

function cronTiming(pattern: string, timezone: string): Timing {
  checkZone(timezone)
  if (typeof pattern !== 'string' || pattern.length > LONGEST_CRON)
    throw scheduleInvalid('cron', `must be a text of at most ${LONGEST_CRON} characters`)
  const cron = compile(pattern, timezone)
  if (cron.nextRun() === null) throw never(pattern)
  return {
    next: after => cron.nextRun(new Date(after))?.getTime(),
    // the reference itself is excluded
    previous: (upTo, count) => cron.previousRuns(count, new Date(upTo + 1)).map(date => date.getTime()),
  }
}

/** Throws SCHEDULE_INVALID for an unknown time zone. */
export function checkZone(timeZone: string): void {
  // the default needs no table of zones, which takes 15 ms to load
  if (timeZone === 'UTC') return
  try {
    void new Intl.DateTimeFormat('en', { timeZone })
  } catch {
    const similar = nearest(String(timeZone), Intl.supportedValuesOf('timeZone'))
    const hint = similar === undefined ? 'Write an IANA name, such as Europe/Berlin' : `Did you mean "${similar}"?`
    throw scheduleInvalid('time_zone', `must be an IANA time zone, was ${JSON.stringify(String(timeZone).slice(0, 100))}`, {
      hint,
    })
  }
}

function compile(pattern: string, timezone: string): Cron {
  try {
    return new Cron(pattern, { ...RULES, timezone })
  } catch (error) {
    throw explained(pattern, error)
  }
}

interface Field {
  readonly text: string
  /** From 1. */
  readonly position: number
}

const fieldsOf = (pattern: string): Field[] =>
  [...pattern.matchAll(/\S+/g)].map(({ 0: text, index }) => ({ text, position: index + 1 }))

/** Finds the field and the item that the library rejects, by trying them one by one. */
function explained(pattern: string, error: unknown): Error {
  const fields = fieldsOf(pattern)
  const examples = 'Write five or six fields, for example "0 3 * * *" (every day at 03:00)'
  if (fields.length === 0) return scheduleInvalid('cron', 'is empty', { position: 1, hint: examples })
  if (fields[0]!.text.startsWith('@'))
    return scheduleInvalid('cron', `has the unknown name ${shown(fields[0]!.text)}`, {
      position: fields[0]!.position,
      hint: 'Use @hourly, @daily, @weekly, @monthly or @yearly',
    })
  if (fields.length < 5 || fields.length > 6) {
    const position = fields.length > 6 ? fields[6]!.position : pattern.trimEnd().length + 1
    return scheduleInvalid('cron', `must have five or six fields, has ${fields.length}`, { position, hint: examples })
  }
  const known = FIELDS.slice(6 - fields.length)
  for (const [at, field] of fields.entries()) {
    const reject = (text: string) => rejected(fields, at, text)
    if (reject(field.text) === undefined) continue
    const { text, position } = worstItem(field, reject)
    const { name, values } = known[at]!
    const reason = reject(text) ?? reject(field.text)!
    const why = reason.startsWith('Invalid value') ? `its values are ${values}` : reason
    return scheduleInvalid('cron', `has an invalid ${name} ${shown(text)}: ${why}`, { position, hint: examples })
  }
  return scheduleInvalid('cron', `is invalid: ${cleaned(messageOf(error))}`, { position: 1, hint: examples })
}

/** The first item of a list that is invalid on its own; otherwise the field. */
function worstItem(field: Field, reject: (text: string) => string | undefined): Field {
  let position = field.position
  for (const text of field.text.split(',')) {
    if (text === '' || reject(text) !== undefined) return { text: text === '' ? field.text : text, position }
    position += text.length + 1
  }
  return field
}

/** Why the library rejects this text at this place, with wildcards in all other fields. */
function rejected(fields: readonly Field[], at: number, text: string): string | undefined {
  try {
    void new Cron(fields.map((_, place) => (place === at ? text : '*')).join(' '), RULES)
    return undefined
  } catch (error) {
    return cleaned(messageOf(error))
  }
}

const shown = (text: string) => JSON.stringify(text.slice(0, 50))

const cleaned = (message: string) =>
  message
    .replace(/^Cron(Pattern|Options|Date)?: /, '')
    .replace(/^Syntax error, /, '')
    .replaceAll(/\p{Cc}/gu, ' ')
    .slice(0, 200)

/** A date that does not exist, such as February 31. */
function never(pattern: string): Error {
  const fields = fieldsOf(pattern)
  const position = fields.at(-3)?.position ?? 1
  return scheduleInvalid('cron', 'never occurs: no month has such a day', {
    position,
    hint: 'Correct the day of month or the month',
  })
}
