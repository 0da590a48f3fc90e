import { any, exact, exchange, field, ok, say } from '../../exchange.ts'

export default exchange({
  rule: 'answers a conversation turn with 200, the id, the reply and all messages',
  source: 'http-api.md "Conversation turn response"; decisions.md 1, success codes, conversations',
  steps: [
    {
      request: say({ message: 'one' }),
      expect: ok(
        exact({
          conversation_id: any('text'),
          response: 'You said: one',
          messages: [exact({ role: 'user', content: 'one' }), exact({ role: 'assistant', content: 'You said: one' })],
        })
      ),
    },
    {
      request: ([first]) => say({ message: 'two', conversation_id: field(first, 'conversation_id') }),
      expect: ([first]) =>
        ok(
          exact({
            conversation_id: field(first, 'conversation_id'),
            response: 'You said: two (turn 2)',
            messages: ['one', 'You said: one', 'two', 'You said: two (turn 2)'].map((content, at) => ({
              role: at % 2 === 0 ? 'user' : 'assistant',
              content,
            })),
          })
        ),
    },
  ],
})
