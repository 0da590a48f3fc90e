import type { Zone } from './zone.ts'

/** A point in time as a zone's clocks show it. */
export interface ShownTime {
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
