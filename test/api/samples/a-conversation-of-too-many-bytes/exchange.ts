import { chat, exchange, field, invalid, ok } from '../../exchange.ts'

export default exchange({
  rule: 'refuses another turn of a conversation whose text has reached its limit of bytes',
  source: 'decisions.md 1, conversations: max_bytes',
  together: 'eager',
  config: { conversations: { max_bytes: 1024 } },
  steps: [
    { request: chat({ message: 'é'.repeat(600), max_tokens: 3 }), expect: ok() },
    {
      request: ([first]) => chat({ message: 'two', conversation_id: field(first, 'conversation_id') }),
      expect: invalid('conversation_id', { limit: 1024 }),
    },
  ],
})
