import { any, chat, exchange, field, list, ok, reply, say, stream } from '../../exchange.ts'

export default exchange({
  rule: 'continues a conversation whose id is given: the model knows the turns before',
  source: 'http-api.md "Chat request", conversation_id',
  steps: [
    { request: chat({ message: 'one' }), expect: ok() },
    {
      request: ([first]) => chat({ message: 'two', conversation_id: field(first, 'conversation_id') }),
      expect: ([first]) => ok({ conversation_id: field(first, 'conversation_id'), response: 'You said: two (turn 2)' }),
    },
    {
      request: ([first]) => stream({ message: 'three', conversation_id: field(first, 'conversation_id') }),
      expect: ([first]) => ({
        status: 200,
        events: [
          { event: 'start', data: { conversation_id: field(first, 'conversation_id') } },
          reply('You said: three (turn 3)'),
          { event: 'end' },
        ],
      }),
    },
    {
      request: ([first]) => say({ message: 'four', conversation_id: field(first, 'conversation_id') }),
      expect: ok({ response: 'You said: four (turn 4)', messages: list({ content: any('text') }, 8) }),
    },
  ],
})
