import { exchange, field, get, not, ok, say } from '../../exchange.ts'

export default exchange({
  rule: 'keeps created_at and moves updated_at with each turn',
  source: 'http-api.md "Conversation record", created_at and updated_at',
  steps: [
    { request: say({ message: 'one' }), expect: ok() },
    { request: ([first]) => get(`/api/v1/conversations/${field(first, 'conversation_id')}`), expect: ok() },
    { request: ([first]) => say({ message: '/delay 5\ntwo', conversation_id: field(first, 'conversation_id') }), expect: ok() },
    {
      request: ([first]) => get(`/api/v1/conversations/${field(first, 'conversation_id')}`),
      expect: ([, before]) =>
        ok({ created_at: field(before, 'created_at'), updated_at: not(field(before, 'updated_at')), message_count: 4 }),
    },
  ],
})
