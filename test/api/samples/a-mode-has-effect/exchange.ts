import { type Answer, any, chat, exchange, from, list, ok, post } from '../../exchange.ts'

const inputOf = (answer: Answer | undefined) => (answer!.body as { tokens_used: { input: number } }).tokens_used.input
const calls = (count: number) => Array.from({ length: count }, () => '/tool current_time {}').join('\n')

export default exchange({
  rule: 'adds to the system prompt and sets a tool-call budget by the mode',
  source: 'decisions.md 1, modes: real effect',
  together: 'switches',
  steps: [
    { request: chat({ message: 'a', tools: [] }), expect: ok() },
    { request: chat({ message: calls(26) }), expect: ok({ tools_used: list({ success: true }, 26) }) },
    { request: post('/api/v1/mode/switch', { mode: 'plan' }), expect: ok() },
    {
      request: chat({ message: 'a', tools: [] }),
      expect: ([before]) => ok({ tokens_used: { input: from(inputOf(before) + 5) } }),
    },
    {
      request: chat({ message: calls(26) }),
      expect: ok({
        tools_used: [...Array.from({ length: 25 }, () => ({ success: true })), { success: false, error: any('text') }],
      }),
    },
  ],
})
