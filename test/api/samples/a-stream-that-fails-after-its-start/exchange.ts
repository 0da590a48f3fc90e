import { any, exact, exchange, get, ok, reply, stream } from '../../exchange.ts'

export default exchange({
  rule: 'tells a failure inside a started stream as an error event, then end with status failed',
  source: 'decisions.md 1, failure inside a started stream',
  steps: [
    {
      request: stream({ message: '/fail rate_limited after 2\none two' }),
      expect: {
        status: 200,
        events: [
          { event: 'start' },
          reply('You said'),
          {
            event: 'error',
            data: exact({
              type: 'error',
              error: any('text'),
              error_code: 'PROVIDER_ERROR',
              details: { provider: 'local', upstream_status: 429, retryable: true },
            }),
          },
          {
            event: 'end',
            data: {
              status: 'failed',
              provider: 'local',
              model: 'local-1',
              tokens_used: any('object'),
              duration_ms: any('integer'),
            },
          },
        ],
      },
    },
    {
      request: ([first]) => get(`/api/v1/conversations/${String(first!.events[0]?.data.conversation_id)}`),
      expect: ok({ messages: [{ role: 'user' }, { role: 'assistant', content: 'You said', status: 'failed' }] }),
    },
  ],
})
