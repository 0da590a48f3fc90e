import { nearest } from '@svc/core'
import { LRUCache } from 'lru-cache'
import { invalidTime, unknownZone } from './errors.ts'

/** An IANA time zone. */
export interface Zone {
  readonly name: string
  /** Its offset from UTC in seconds at an instant (Unix milliseconds). */
  offsetAt(instant: number): number
}

/** Maximum number of cached formatters, which take 50 µs and some kilobytes each. */
const KEPT = 64
const open = new LRUCache<string, Zone>({ max: KEPT })

/** Finds a zone by name, ignoring case. Throws TIME_ZONE_UNKNOWN with the nearest name. */
export function zoneOf(name: string): Zone {
  const known = open.get(name)
  if (known) return known
  const format = formatOf(name)
  const zone: Zone = { name: format.resolvedOptions().timeZone, offsetAt: instant => zoneOffset(format, instant) }
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
  // users often write "Berlin" or "New York"
  const city = name.trim().replaceAll(' ', '_').toLowerCase()
  return zones.find(zone => zone.toLowerCase().endsWith(`/${city}`)) ?? nearest(name, zones)
}

function zoneOffset(format: Intl.DateTimeFormat, instant: number): number {
  const parts = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]))
  const wall = utcOf(parts as unknown as WallTime)
  return Math.round((wall - Math.floor(instant / 1000) * 1000) / 1000)
}

/** The instant of a local time. `skipped`: the clocks were put forward past it; `twice`: it occurred twice. */
export interface Instant {
  readonly at: number
  readonly oddity?: 'skipped' | 'twice'
}

const DAY_MS = 86_400_000

/**
 * Finds the instant of a local time in a zone. For a time that occurred twice, returns the first. A skipped time is shifted by
 * the change of the offset, as in RFC 5545 and Temporal ("compatible").
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

/** An instant as a time zone shows it. */
interface ShownTime {
  /** ISO 8601 with the offset of the zone. */
  readonly time: string
  readonly time_zone: string
  readonly weekday: string
  /** The same instant in UTC. */
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

/** Formats an instant (Unix milliseconds) in a zone, to the second. */
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

/** Formats a time for the model. */
export const lineOf = ({ weekday, time, time_zone }: ShownTime): string => `${weekday}, ${time} (${time_zone})`

function offsetText(offset: number): string {
  const [size, two] = [Math.abs(offset), (value: number) => String(Math.floor(value)).padStart(2, '0')]
  // local mean times before about 1900 have offsets with seconds
  const seconds = size % 60 === 0 ? '' : `:${two(size % 60)}`
  return `${offset < 0 ? '-' : '+'}${two(size / 3600)}:${two((size / 60) % 60)}${seconds}`
}

/** A local date and time without a zone. */
interface WallTime {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
}

/** A parsed time, with its offset in seconds if it has one. */
interface WrittenTime extends WallTime {
  readonly offset?: number
}

/** Interprets the fields as UTC, in Unix milliseconds. */
export const utcOf = (wall: WallTime): number =>
  Date.UTC(wall.year, wall.month - 1, wall.day, wall.hour, wall.minute, wall.second)

const WRITTEN = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d{1,9})?)?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?$/i
const FIRST_YEAR = 1000

/** Parses ISO 8601: a date, or date and time, with or without an offset. Fractions of a second are dropped. Throws TIME_INVALID. */
export function readTime(text: string): WrittenTime {
  const match = WRITTEN.exec(text.trim())
  if (!match) throw invalidTime(text, 'it does not have the form 2026-03-29T14:30')
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(word => Number(word ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  const wall = { year, month, day, hour, minute, second }
  const wrong = problemOf(wall)
  if (wrong) throw invalidTime(text, wrong)
  return match[7] === undefined ? wall : { ...wall, offset: offsetOf(match[7], text) }
}

function problemOf({ year, month, day, hour, minute, second }: WallTime): string | undefined {
  if (year < FIRST_YEAR) return `the first supported year is ${FIRST_YEAR}`
  if (month < 1 || month > 12) return `month ${month} does not exist`
  const days = new Date(Date.UTC(year, month, 0)).getUTCDate()
  if (day < 1 || day > days) return `the month has ${days} days`
  return hour > 23 || minute > 59 || second > 59 ? 'the last time of a day is 23:59:59' : undefined
}

function offsetOf(written: string, text: string): number {
  if (written.toUpperCase() === 'Z') return 0
  const [hours, minutes] = [Number(written.slice(1, 3)), Number(written.slice(3).replace(':', '') || 0)]
  if (hours > 14 || minutes > 59) throw invalidTime(text, `offset ${written} does not exist`)
  return (written.startsWith('-') ? -1 : 1) * (hours * 3600 + minutes * 60)
}
