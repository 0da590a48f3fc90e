import { nearest } from '@svc/core'
import { invalidTime, unknownZone } from './errors.ts'

/** A time zone of the IANA list. */
export interface Zone {
  readonly name: string
  /** Seconds that its clocks are ahead of UTC at an instant (Unix milliseconds). */
  offsetAt(instant: number): number
}

const open = new Map<string, Zone>()
/** A formatter is 50 µs and some kilobytes; few programs use more zones than this. */
const KEPT = 64

/** Finds a zone by its name, upper or lower case. Throws TIME_ZONE_UNKNOWN with the nearest name. */
export function zoneOf(name: string): Zone {
  const known = open.get(name)
  if (known) return known
  const format = formatOf(name)
  const zone: Zone = { name: format.resolvedOptions().timeZone, offsetAt: instant => zoneOffset(format, instant) }
  if (open.size >= KEPT) open.clear()
  open.set(name, zone)
  return zone
}

/** The zone of this machine. */
export const localZone = (): Zone => zoneOf(new Intl.DateTimeFormat('en').resolvedOptions().timeZone)

function formatOf(name: string): Intl.DateTimeFormat {
  const fields = {
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  } as const
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      hourCycle: 'h23',
      calendar: 'gregory',
      numberingSystem: 'latn',
      ...fields,
    })
  } catch (error) {
    if (error instanceof RangeError) throw unknownZone(name, nearestZone(name))
    throw error
  }
}

function nearestZone(name: string): string | undefined {
  const zones = Intl.supportedValuesOf('timeZone')
  // "Berlin" and "New York" are what people say.
  const city = name.trim().replaceAll(' ', '_').toLowerCase()
  return zones.find(zone => zone.toLowerCase().endsWith(`/${city}`)) ?? nearest(name, zones)
}

function zoneOffset(format: Intl.DateTimeFormat, instant: number): number {
  const parts = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]))
  const wall = utcOf(parts as unknown as WallTime)
  return Math.round((wall - Math.floor(instant / 1000) * 1000) / 1000)
}

/** The instant a wall clock means. `skipped`: the clocks were put forward over it; `twice`: they showed it twice. */
export interface Instant {
  readonly at: number
  readonly oddity?: 'skipped' | 'twice'
}

const DAY_MS = 86_400_000

/**
 * Finds the instant that the clocks of a zone show as `wall`. Shown twice (clocks put back): the first. Never shown (clocks put forward): as
 * much later as the clocks were put forward, which is what RFC 5545 and Temporal ("compatible") do.
 */
export function instantOf(wall: WallTime, zone: Zone): Instant {
  const utc = utcOf(wall)
  const [before, after] = [zone.offsetAt(utc - DAY_MS), zone.offsetAt(utc + DAY_MS)]
  const shown = [...new Set([before, after])]
    .map(offset => utc - offset * 1000)
    .filter(at => utc - at === zone.offsetAt(at) * 1000)
  if (shown.length === 0) return { at: utc - before * 1000, oddity: 'skipped' }
  return shown.length === 1 ? { at: shown[0]! } : { at: Math.min(...shown), oddity: 'twice' }
}

/** A point in time as a zone's clocks show it. */
interface ShownTime {
  /** ISO 8601 with the zone's offset. */
  readonly time: string
  readonly time_zone: string
  readonly weekday: string
  /** The same in UTC. */
  readonly utc: string
}

/** JSON Schema of `ShownTime`. */
export const SHOWN_TIME = {
  type: 'object',
  properties: {
    time: { type: 'string', description: 'ISO 8601 with the offset of the zone' },
    time_zone: { type: 'string' },
    weekday: { type: 'string' },
    utc: { type: 'string', description: 'the same instant in UTC' },
  },
  required: ['time', 'time_zone', 'weekday', 'utc'],
  additionalProperties: false,
} as const

/** Shows an instant (Unix milliseconds) in a zone, to the second. */
export function showTime(instant: number, zone: Zone): ShownTime {
  const offset = zone.offsetAt(instant)
  const wall = new Date(instant + offset * 1000)
  return {
    time: wall.toISOString().slice(0, 19) + offsetText(offset),
    time_zone: zone.name,
    weekday: wall.toLocaleDateString('en-US', { weekday: 'long', timeZone: 'UTC' }),
    utc: `${new Date(instant).toISOString().slice(0, 19)}Z`,
  }
}

/** A line for the model. */
export const lineOf = ({ weekday, time, time_zone }: ShownTime): string => `${weekday}, ${time} (${time_zone})`

function offsetText(offset: number): string {
  const [size, two] = [Math.abs(offset), (value: number) => String(Math.floor(value)).padStart(2, '0')]
  // Before about 1900 towns had their own time, to the second.
  const seconds = size % 60 === 0 ? '' : `:${two(size % 60)}`
  return `${offset < 0 ? '-' : '+'}${two(size / 3600)}:${two((size / 60) % 60)}${seconds}`
}

/** What a clock and a calendar on the wall show. */
interface WallTime {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
}

/** A time as it was written: `offset` in seconds where it names one. */
interface WrittenTime extends WallTime {
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
