import { type Answer, any, beside, chat, exchange, get, ok, stream } from '../../exchange.ts'

const metrics = (answer: Answer | undefined) =>
  answer?.body as { requests_total: number; providers: { local: { requests: number } } }

export default exchange({
  rule: 'counts requests of the server and of each provider',
  source: 'http-api.md "Status record", requests_total and providers',
  together: 'names',
  config: { plugins: [beside('../../../support/hold.ts', import.meta.url)] },
  steps: [
    { request: get('/api/v1/status'), expect: ok({ requests_active: 1, providers: { local: { requests: any('integer') } } }) },
    { request: chat({ message: 'a' }), expect: ok() },
    { request: chat({ message: '/tool current_time {}' }), expect: ok() },
    {
      request: get('/api/v1/status'),
      expect: ([first]) =>
        ok({
          requests_total: metrics(first).requests_total + 3,
          requests_active: 1,
          providers: { local: { requests: metrics(first).providers.local.requests + 3 } },
        }),
    },
    { request: stream({ message: '/tool hold {}\na' }), hold: 'tool_call' },
    { request: get('/api/v1/status'), expect: ok({ requests_active: 2 }) },
    { request: { method: 'POST', path: '/release' }, expect: { status: 204 } },
    { finish: true, expect: ok() },
  ],
})
