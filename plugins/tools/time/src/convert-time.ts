import type { Tool } from '@svc/core/contracts'
import { toolOf } from '@svc/plugin-kit'
import { zoneMissing } from './errors.ts'
import { type Instant, instantOf, lineOf, readTime, SHOWN_TIME, showTime, utcOf, type Zone, zoneOf } from './zone.ts'

const zone = (description: string) => ({ type: 'string', minLength: 1, maxLength: 64, description })

const NOTES = {
  skipped: 'The clocks were put forward past this time, so it did not exist; the time is shifted by the same amount.',
  twice: 'The clocks were put back, so this time occurred twice; the first is used.',
} as const

/** Arguments as the schema allows them. */
interface Arguments {
  readonly time: string
  readonly from_zone?: string
  readonly to_zone: string
}

/** Creates `convert_time`. */
export function createConvertTime(): Tool {
  return toolOf<Arguments>({
    description: 'Converts a date and time between time zones, with daylight saving time.',
    category: 'time',
    effects: ['read'],
    parameters: {
      type: 'object',
      properties: {
        time: {
          type: 'string',
          minLength: 1,
          maxLength: 64,
          description: 'ISO 8601: 2026-03-29T14:30, with or without an offset such as Z or +02:00',
        },
        from_zone: zone('IANA name of the zone of `time`, such as America/New_York; required if `time` has no offset'),
        to_zone: zone('IANA name of the zone to convert to, such as Asia/Tokyo'),
      },
      required: ['time', 'to_zone'],
      additionalProperties: false,
    },
    result: {
      type: 'object',
      properties: { from: SHOWN_TIME, to: SHOWN_TIME, note: { type: 'string' } },
      required: ['from', 'to'],
      additionalProperties: false,
    },
    async call({ time, from_zone, to_zone }) {
      const to = zoneOf(to_zone)
      const named = from_zone === undefined ? undefined : zoneOf(from_zone)
      const { at, oddity } = meant(time, named)
      const [from, shown] = [showTime(at, named ?? zoneOf('UTC')), showTime(at, to)]
      const note = oddity && NOTES[oddity]
      const text = `${lineOf(from)} is ${lineOf(shown)}.${note ? ` ${note}` : ''}`
      return { content: [{ type: 'text', text }], structured: { from: { ...from }, to: { ...shown }, ...(note ? { note } : {}) } }
    },
  })
}

/** The instant of a written time. An offset in the text takes precedence over the zone. */
function meant(text: string, named: Zone | undefined): Instant {
  const written = readTime(text)
  if (written.offset !== undefined) return { at: utcOf(written) - written.offset * 1000 }
  if (!named) throw zoneMissing(text)
  return instantOf(written, named)
}
