import { chat, exchange, refused } from '../../exchange.ts'

export default exchange({
  rule: 'tells a model that does not answer in time as PROVIDER_ERROR',
  source: 'decisions.md 1, sizes: first token 30 s, a configuration key',
  together: 'late',
  config: { chat: { first_token_timeout_ms: 100 } },
  steps: [
    {
      request: chat({ message: '/delay 60000\na' }),
      expect: refused(503, 'PROVIDER_ERROR', { provider: 'local', retryable: true }),
    },
  ],
})
