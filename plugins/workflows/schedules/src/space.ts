import { createHash } from 'node:crypto'
import type { Json, ScheduleSpec, ScheduleTick, Space, StoreOp } from '@svc/core/contracts'

/** Records of schedules by name. */
export const SCHEDULES = 'schedules'
/** Handled ticks: `<name>/<tick>`. */
export const TICKS = 'schedule_ticks'
/** Ranges of handled ticks whose records are deleted, by the name of the schedule. */
export const PRUNED = 'schedule_pruned'

export const SPACE: Space = {
  name: 'schedules',
  version: 1,
  collections: { [SCHEDULES]: { watched: true, indexes: { by_owner: ['owner'] } }, [TICKS]: {}, [PRUNED]: {} },
}

/** What the store keeps of a schedule. Times are Unix milliseconds. */
export interface ScheduleRecord {
  /** Set for a schedule that a caller added; the others are defined by the configuration or a plugin. */
  readonly spec?: ScheduleSpec
  readonly owner: string
  readonly scopes: readonly string[]
  /** Identifies the definition. Only workers with this definition handle ticks. */
  readonly fingerprint: string
  /** Ticks up to this time are not caught up. */
  readonly since: number
  readonly isPaused: boolean
}

/** Ticks that follow each other, the first and the last included. */
export interface TickRange {
  readonly from: number
  readonly upTo: number
}

/** Number of digits of a tick in a key, so that keys sort by time. */
const DIGITS = 15
/** Number of ticks that are kept for each schedule at least. */
export const KEPT_TICKS = 2_000

const tickKey = (name: string, tick: number) => `${name}/${String(tick).padStart(DIGITS, '0')}`
/** The keys of a schedule's ticks before a time, exclusive. */
export const ticksBefore = (name: string, tick: number) => ({ from: `${name}/`, to: tickKey(name, tick) })
/** After all times that `Date` knows. */
export const END_OF_TIME = 10 ** DIGITS - 1

export const putRecord = (name: string, record: ScheduleRecord, ifVersion: number): StoreOp => ({
  op: 'put',
  collection: SCHEDULES,
  key: name,
  value: record as unknown as Json,
  ifVersion,
})

/** Adds the record of a tick. The batch fails if another worker has handled it. */
export const putTick = (name: string, tick: ScheduleTick): StoreOp => ({
  op: 'put',
  collection: TICKS,
  key: tickKey(name, tick.tick),
  value: tick as unknown as Json,
  ifVersion: 0,
})

/** Identifies the definition of a schedule. */
export const fingerprintOf = (spec: ScheduleSpec): string =>
  createHash('sha256')
    .update(JSON.stringify(sorted(spec)))
    .digest('base64url')

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, part]) => part !== undefined)
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, part]) => [key, sorted(part)]))
}

/** The delay of a job after its tick: the same in every worker. */
export function jitterOf(name: string, tick: number, jitterMs: number): number {
  const bytes = createHash('sha256').update(tickKey(name, tick)).digest()
  return Math.floor((bytes.readUInt32BE() / 2 ** 32) * (jitterMs + 1))
}
