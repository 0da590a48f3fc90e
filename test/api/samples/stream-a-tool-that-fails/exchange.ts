import { exchange, matching, reply, stream } from '../../exchange.ts'

export default exchange({
  rule: 'tells a tool that failed with success false and the error, and goes on',
  source: 'decisions.md 1, a tool that fails inside a chat turn',
  steps: [
    {
      request: stream({ message: '/tool current_time {"time_zone":"Moon/Base"}' }),
      expect: {
        status: 200,
        events: [
          { event: 'start' },
          { event: 'tool_call' },
          { event: 'tool_result', data: { success: false, error: matching(/Moon\/Base/) } },
          reply(matching(/failed/)),
          { event: 'end', data: { status: 'completed' } },
        ],
      },
    },
  ],
})
