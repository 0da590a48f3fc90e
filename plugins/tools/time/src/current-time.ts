import type { Tool } from '@svc/core/contracts'
import { toolOf } from '@svc/plugin-kit'
import { lineOf, localZone, SHOWN_TIME, showTime, zoneOf } from './zone.ts'

/** Makes `current_time`; `now` is the clock it reads. */
export function createCurrentTime(now: () => number = Date.now): Tool {
  return toolOf<{ readonly time_zone?: string }>({
    description: 'Tells the current date, time and weekday, in a time zone of your choice.',
    category: 'time',
    effects: ['read'],
    parameters: {
      type: 'object',
      properties: {
        time_zone: {
          type: 'string',
          minLength: 1,
          maxLength: 64,
          description: 'IANA name like Europe/Berlin, or UTC; without it the zone of the machine',
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
