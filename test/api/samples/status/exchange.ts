import { any, exact, exchange, field, from, get, ok } from '../../exchange.ts'

export default exchange({
  rule: 'returns version, uptime and metrics of requests, providers and cache',
  source: 'http-api.md "Status record"; decisions.md 1, health: a cache that is off',
  steps: [
    { request: get('/health'), expect: ok() },
    {
      request: get('/api/v1/status'),
      expect: ([health]) =>
        ok(
          exact({
            version: field(health, 'version'),
            uptime_seconds: any('integer'),
            requests_total: from(2),
            requests_active: from(1),
            providers: exact({ local: exact({ healthy: true, requests: any('integer') }) }),
            cache: exact({ enabled: false, size: 0, hit_rate: 0 }),
          })
        ),
    },
  ],
})
