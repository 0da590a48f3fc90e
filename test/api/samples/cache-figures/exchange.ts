import { any, chat, exact, exchange, get, ok, stream } from '../../exchange.ts'

const message = 'the very same'

export default exchange({
  rule: 'tells what the cache has really done: answers kept, and the share of the questions that it has answered',
  source: 'http-api.md "Status record", cache; decisions.md 1, health',
  alone: true,
  config: { chat: { cache: { enabled: true } } },
  steps: [
    { request: get('/api/v1/status'), expect: ok({ cache: exact({ enabled: true, size: 0, hit_rate: 0 }) }) },
    ...[1, 2, 3].map(() => ({ request: chat({ message }), expect: ok({ tokens_used: { output: any('integer') } }) })),
    { request: stream({ message }), expect: { status: 200 } },
    { request: get('/api/v1/status'), expect: ok({ cache: exact({ enabled: true, size: 1, hit_rate: 0.75 }) }) },
    { request: chat({ message: 'another' }), expect: ok() },
    { request: get('/api/v1/status'), expect: ok({ cache: exact({ enabled: true, size: 2, hit_rate: 0.6 }) }) },
    { request: get('/health'), expect: ok({ status: 'healthy', checks: { cache: 'healthy' } }) },
  ],
})
