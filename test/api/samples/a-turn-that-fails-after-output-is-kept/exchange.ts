import { any, chat, exact, exchange, field, get, ok, refused } from '../../exchange.ts'

export default exchange({
  rule: 'keeps what there was of a turn that fails after output, and marks it',
  source: 'decisions.md 1, a turn that fails: kept, and the message carries the extra `status`',
  steps: [
    { request: chat({ message: 'one' }), expect: ok() },
    {
      request: ([first]) =>
        chat({ message: '/fail network after 3\none two three four', conversation_id: field(first, 'conversation_id') }),
      expect: refused(503, 'PROVIDER_ERROR', { provider: 'local', retryable: true }),
    },
    {
      request: ([first]) => get(`/api/v1/conversations/${field(first, 'conversation_id')}`),
      expect: ok({
        message_count: 4,
        messages: [
          exact({ role: 'user', content: 'one' }),
          exact({ role: 'assistant', content: 'You said: one' }),
          { role: 'user', content: any('text') },
          exact({ role: 'assistant', content: 'You said:', status: 'failed' }),
        ],
      }),
    },
  ],
})
