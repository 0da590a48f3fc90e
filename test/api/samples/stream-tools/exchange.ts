import { any, exact, exchange, matching, reply, stream } from '../../exchange.ts'

const call_id = any('text')

export default exchange({
  rule: 'tells each tool call before it runs and each result after it',
  source: 'http-api.md "Events", tool_call and tool_result; decisions.md 1, `tool_call` / `tool_result`',
  steps: [
    {
      request: stream({ message: '/tool current_time {"time_zone":"UTC"}' }),
      expect: {
        status: 200,
        events: [
          { event: 'start' },
          {
            event: 'tool_call',
            data: exact({ type: 'tool_call', tool: 'current_time', call_id, arguments: exact({ time_zone: 'UTC' }) }),
          },
          {
            event: 'tool_result',
            data: exact({
              type: 'tool_result',
              tool: 'current_time',
              call_id,
              success: true,
              result: any('object'),
              error: null,
              duration_ms: any('integer'),
            }),
          },
          reply(matching(/current_time answered/)),
          { event: 'end', data: { status: 'completed' } },
        ],
      },
    },
  ],
})
