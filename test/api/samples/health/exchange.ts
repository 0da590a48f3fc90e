import { any, exact, exchange, get, matching, ok } from '../../exchange.ts'

export default exchange({
  rule: 'tells its health with version, uptime and the checks database, providers and cache',
  source: 'http-api.md "Health record"; decisions.md 1, health',
  steps: [
    {
      request: get('/health'),
      expect: ok(
        exact({
          status: 'healthy',
          version: matching(/^\d+\.\d+\.\d+/),
          uptime_seconds: any('integer'),
          checks: exact({ database: 'healthy', providers: 'healthy', cache: 'healthy' }),
        })
      ),
    },
  ],
})
