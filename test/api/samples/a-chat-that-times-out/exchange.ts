import { chat, exchange, refused, say, stream } from '../../exchange.ts'

export default exchange({
  rule: 'tells a chat that does not end in time as PROVIDER_ERROR',
  source: 'decisions.md 1: a chat that times out is PROVIDER_ERROR; sizes: chat.timeout_ms',
  together: 'start',
  config: { chat: { timeout_ms: 100 } },
  steps: [chat, stream, say].map(ask => ({
    request: ask({ message: '/delay 60000\na' }),
    expect: refused(503, 'PROVIDER_ERROR', { provider: 'local', retryable: true }),
  })),
})
