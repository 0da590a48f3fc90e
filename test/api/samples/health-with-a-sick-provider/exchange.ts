import { beside, chat, exact, exchange, get, matching, ok } from '../../exchange.ts'

export default exchange({
  rule: 'is degraded when one of its providers cannot be reached, and says which in the status',
  source: 'decisions.md 1, health; http-api.md "Status record", providers',
  together: 'degraded',
  config: { plugins: [beside('./plugin.ts', import.meta.url)] },
  steps: [
    {
      request: get('/health'),
      expect: ok({ status: 'degraded', checks: { database: 'healthy', providers: 'degraded', cache: 'healthy' } }),
    },
    {
      request: get('/api/v1/status'),
      expect: ok({
        providers: exact({
          local: exact({ healthy: true, requests: 0 }),
          sick: exact({ healthy: false, error: matching(/cannot be reached/) }),
        }),
      }),
    },
    { request: get('/health/ready'), expect: ok({ status: 'ready' }) },
    { request: chat({ message: 'a', provider: 'local' }), expect: ok() },
  ],
})
