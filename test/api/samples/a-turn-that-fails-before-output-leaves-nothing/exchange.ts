import { chat, exchange, field, get, ok, refused } from '../../exchange.ts'

export default exchange({
  rule: 'keeps nothing of a turn that fails before any output',
  source: 'decisions.md 1, a turn that fails',
  together: 'names',
  steps: [
    { request: chat({ message: '/fail network' }), expect: refused(503, 'PROVIDER_ERROR') },
    { request: get('/api/v1/conversations'), expect: ok({ conversations: [] }) },
    { request: chat({ message: 'one' }), expect: ok() },
    {
      request: answers => chat({ message: '/fail overloaded', conversation_id: field(answers[2], 'conversation_id') }),
      expect: refused(503, 'PROVIDER_ERROR'),
    },
    {
      request: answers => get(`/api/v1/conversations/${field(answers[2], 'conversation_id')}`),
      expect: ok({ message_count: 2 }),
    },
  ],
})
