import { invalidTime } from './errors.ts'

/** What a clock and a calendar on the wall show. */
export interface WallTime {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
}

/** A time as it was written: `offset` in seconds where it names one. */
export interface WrittenTime extends WallTime {
  readonly offset?: number
}

/** The same figures taken as UTC, in Unix milliseconds. */
export const utcOf = (wall: WallTime): number =>
  Date.UTC(wall.year, wall.month - 1, wall.day, wall.hour, wall.minute, wall.second)

const WRITTEN = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d{1,9})?)?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?$/i
const FIRST_YEAR = 1000

/** Reads ISO 8601: a date, or date and time, with or without an offset; parts of a second are dropped. Throws TIME_INVALID. */
export function readTime(text: string): WrittenTime {
  const match = WRITTEN.exec(text.trim())
  if (!match) throw invalidTime(text, 'it is not written as 2026-03-29T14:30')
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(word => Number(word ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  const wall = { year, month, day, hour, minute, second }
  const wrong = faultOf(wall)
  if (wrong) throw invalidTime(text, wrong)
  return match[7] === undefined ? wall : { ...wall, offset: offsetOf(match[7], text) }
}

function faultOf({ year, month, day, hour, minute, second }: WallTime): string | undefined {
  if (year < FIRST_YEAR) return `years begin with ${FIRST_YEAR} here`
  if (month < 1 || month > 12) return `there is no month ${month}`
  const days = new Date(Date.UTC(year, month, 0)).getUTCDate()
  if (day < 1 || day > days) return `that month has ${days} days`
  return hour > 23 || minute > 59 || second > 59 ? 'a day ends at 23:59:59' : undefined
}

function offsetOf(written: string, text: string): number {
  if (written.toUpperCase() === 'Z') return 0
  const [hours, minutes] = [Number(written.slice(1, 3)), Number(written.slice(3).replace(':', '') || 0)]
  if (hours > 14 || minutes > 59) throw invalidTime(text, `there is no offset ${written}`)
  return (written.startsWith('-') ? -1 : 1) * (hours * 3600 + minutes * 60)
}
