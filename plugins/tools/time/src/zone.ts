import { nearest } from '@svc/core'
import { unknownZone } from './errors.ts'
import { type WallTime, utcOf } from './wall-time.ts'

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
  const zone: Zone = { name: format.resolvedOptions().timeZone, offsetAt: instant => offsetOf(format, instant) }
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

function offsetOf(format: Intl.DateTimeFormat, instant: number): number {
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
