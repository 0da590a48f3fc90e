import { any, chat, exact, exchange, matching, ok } from '../../exchange.ts'

export default exchange({
  rule: 'lists each tool call with its id, arguments, success and time',
  source: 'decisions.md 1, items of `tools_used`',
  steps: [
    {
      request: chat({ message: '/tool current_time {"time_zone":"UTC"}' }),
      expect: ok({
        success: true,
        response: matching(/UTC/),
        tools_used: [
          exact({
            tool: 'current_time',
            call_id: any('text'),
            arguments: exact({ time_zone: 'UTC' }),
            success: true,
            duration_ms: any('integer'),
          }),
        ],
      }),
    },
  ],
})
