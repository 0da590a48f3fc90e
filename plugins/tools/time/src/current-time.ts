import type { Tool } from '@svc/core/contracts'
import { toolOf } from '@svc/plugin-kit'
import { lineOf, localZone, SHOWN_TIME, showTime, zoneOf } from './zone.ts'

/** Creates `current_time`; `now` is its clock. */
export function createCurrentTime(now: () => number = Date.now): Tool {
  return toolOf<{ readonly time_zone?: string }>({
    description: 'Returns the current date, time and weekday in a time zone.',
    category: 'time',
    effects: ['read'],
    parameters: {
      type: 'object',
      properties: {
        time_zone: {
          type: 'string',
          minLength: 1,
          maxLength: 64,
          description: 'IANA name such as Europe/Berlin, or UTC; default: the zone of the machine',
        },
      },
      additionalProperties: false,
    },
    result: SHOWN_TIME,
    async call({ time_zone }) {
      const zone = time_zone === undefined ? localZone() : zoneOf(time_zone)
      const shown = showTime(now(), zone)
      return { content: [{ type: 'text', text: lineOf(shown) }], structured: { ...shown } }
    },
  })
}
