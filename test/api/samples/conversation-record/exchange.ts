import { any, exact, exchange, field, get, list, ok, oneOf, say, time } from '../../exchange.ts'

export default exchange({
  rule: 'reads a conversation with its times, the count of its messages and the messages',
  source: 'http-api.md "Conversation record"',
  steps: [
    { request: say({ message: 'one' }), expect: ok() },
    {
      request: ([first]) => get(`/api/v1/conversations/${field(first, 'conversation_id')}`),
      expect: ([first]) =>
        ok(
          exact({
            conversation_id: field(first, 'conversation_id'),
            created_at: time,
            updated_at: time,
            message_count: 2,
            messages: list(exact({ role: oneOf('user', 'assistant'), content: any('text') }), 2),
          })
        ),
    },
  ],
})
