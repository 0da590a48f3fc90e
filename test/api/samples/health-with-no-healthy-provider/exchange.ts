import { absent, beside, exchange, get, ok } from '../../exchange.ts'

export default exchange({
  rule: 'is unhealthy, with 503, when none of its providers can be reached',
  source: 'decisions.md 1, health: unhealthy (503)',
  together: 'few',
  config: {
    plugins: [
      beside('../health-with-a-sick-provider/plugin.ts', import.meta.url),
      { use: '@svc/plugin-provider-local', enabled: false },
    ],
  },
  steps: [
    {
      request: get('/health'),
      expect: { status: 503, body: { status: 'unhealthy', checks: { providers: 'unhealthy' }, success: absent } },
    },
    { request: get('/health/live'), expect: ok({ status: 'alive' }) },
  ],
})
