import { type Answer, chat, exchange, field, ok, reply, stream } from '../../exchange.ts'

const body = { message: '/tool current_time {"time_zone":"Moon/Base"}\nand so on' }
const numbers = (answer: Answer | undefined) => (answer!.body as { tokens_used: object }).tokens_used

export default exchange({
  rule: 'makes the same reply with the same tokens, whether gathered or streamed',
  source: 'issue 3, 5: a reply, its tools_used and its tokens are the same',
  steps: [
    { request: chat(body), expect: ok({ tools_used: [{ tool: 'current_time', success: false }] }) },
    {
      request: stream(body),
      expect: ([gathered]) => ({
        status: 200,
        events: [
          { event: 'start' },
          { event: 'tool_call', data: { tool: 'current_time' } },
          { event: 'tool_result', data: { tool: 'current_time', success: false } },
          reply(field(gathered, 'response')),
          { event: 'end', data: { tokens_used: numbers(gathered) } },
        ],
      }),
    },
  ],
})
