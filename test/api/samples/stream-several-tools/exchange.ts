import { any, exchange, reply, stream } from '../../exchange.ts'

const [utc, here] = ['/tool current_time {"time_zone":"UTC"}', '/tool current_time {"time_zone":"Asia/Tokyo"}']

export default exchange({
  rule: 'gives every tool call an id of its own that its result repeats',
  source: 'decisions.md 1, `tool_call` / `tool_result`: call_id',
  steps: [
    {
      request: stream({ message: `${utc}\n${here}` }),
      expect: {
        status: 200,
        events: [
          { event: 'start' },
          { event: 'tool_call', data: { call_id: 'call_1_1', arguments: { time_zone: 'UTC' } } },
          { event: 'tool_call', data: { call_id: 'call_1_2', arguments: { time_zone: 'Asia/Tokyo' } } },
          { event: 'tool_result', data: { call_id: 'call_1_1', success: true } },
          { event: 'tool_result', data: { call_id: 'call_1_2', success: true } },
          reply(any('text')),
          { event: 'end' },
        ],
      },
    },
  ],
})
