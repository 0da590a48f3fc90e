import { any, exact, exchange, from, get, matching, ok } from '../../exchange.ts'

export default exchange({
  rule: 'tells its health with version, uptime and the checks database, providers and cache (and those of workflows and models), and what the tool server beside it tells',
  source: 'http-api.md "Health record"; decisions.md 1, health; decisions.md 2, GET /health: on a shared port the union',
  steps: [
    {
      request: get('/health'),
      expect: ok(
        exact({
          status: 'healthy',
          version: matching(/^\d+\.\d+\.\d+/),
          uptime_seconds: any('integer'),
          checks: exact({ database: 'healthy', providers: 'healthy', cache: 'healthy', workflows: 'healthy', models: 'healthy' }),
          tools: from(20, 100),
          protocol_versions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'],
        })
      ),
    },
  ],
})
