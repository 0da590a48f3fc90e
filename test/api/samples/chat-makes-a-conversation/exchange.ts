import { any, chat, exact, exchange, field, get, not, ok } from '../../exchange.ts'

export default exchange({
  rule: 'makes a conversation for a chat without conversation_id and returns its id',
  source: 'decisions.md 1, chat without `conversation_id`',
  steps: [
    { request: chat({ message: 'first words' }), expect: ok({ conversation_id: any('text') }) },
    {
      request: ([first]) => get(`/api/v1/conversations/${field(first, 'conversation_id')}`),
      expect: ([first]) =>
        ok({
          conversation_id: field(first, 'conversation_id'),
          message_count: 2,
          messages: [
            exact({ role: 'user', content: 'first words' }),
            exact({ role: 'assistant', content: 'You said: first words' }),
          ],
        }),
    },
    {
      request: chat({ message: 'other words' }),
      expect: ([first]) => ok({ conversation_id: not(field(first, 'conversation_id')) }),
    },
  ],
})
