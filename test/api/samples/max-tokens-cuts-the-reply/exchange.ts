import { chat, exchange, ok } from '../../exchange.ts'

export default exchange({
  rule: 'gives no more tokens of output than max_tokens',
  source: 'http-api.md "Chat request", max_tokens; issue 3, 6: honours max_tokens',
  steps: [
    {
      request: chat({ message: 'one two three four five six seven', max_tokens: 5 }),
      expect: ok({ response: 'You said: one', tokens_used: { output: 5 } }),
    },
    { request: chat({ message: 'one', max_tokens: 4096 }), expect: ok({ response: 'You said: one' }) },
  ],
})
