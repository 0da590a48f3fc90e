import { exchange, get, invalid, refused } from '../../exchange.ts'

const EVENTS = '/api/v1/events'

export default exchange({
  rule: 'streams events from now on, and refuses positions that are not of this server',
  source: 'docs/guides/follow-events.md',
  steps: [
    { request: get(`${EVENTS}?types=turn_*,run_ended`), hold: true },
    { request: get(`${EVENTS}?after=x`), expect: refused(400, 'CURSOR_INVALID') },
    { request: { ...get(EVENTS), headers: { 'last-event-id': 'ZmVlZDphfjE' } }, expect: refused(400, 'CURSOR_INVALID') },
    { request: get(`${EVENTS}?types=Turn`), expect: invalid('types') },
    { request: get(`${EVENTS}?types=a,,b`), expect: invalid('types') },
    { request: get(`${EVENTS}?after=`), expect: invalid('after') },
    { request: get(`${EVENTS}?request_id=`), expect: invalid('request_id') },
  ],
})
