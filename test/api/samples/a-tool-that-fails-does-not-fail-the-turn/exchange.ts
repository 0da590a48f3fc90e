import { chat, exchange, matching, ok } from '../../exchange.ts'

export default exchange({
  rule: 'tells the model that a tool failed and goes on: the turn is 200, the item says success false and why',
  source: 'decisions.md 1, a tool that fails inside a chat turn',
  steps: [
    {
      request: chat({ message: '/tool current_time {"time_zone":"Moon/Base"}' }),
      expect: ok({
        success: true,
        response: matching(/current_time failed: .*Moon\/Base/),
        tools_used: [
          { tool: 'current_time', success: false, error: matching(/Moon\/Base/), arguments: { time_zone: 'Moon/Base' } },
        ],
      }),
    },
    {
      request: chat({ message: '/tool read_file {"path":7}' }),
      expect: ok({ tools_used: [{ tool: 'read_file', success: false, error: matching(/path/) }] }),
    },
  ],
})
