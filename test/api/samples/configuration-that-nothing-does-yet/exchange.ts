import { any, chat, exact, exchange, get, ok } from '../../exchange.ts'

export default exchange({
  rule: 'knows every documented key: defaults and values that nothing owns yet are accepted without effect',
  source: 'decisions.md 1, configuration: every documented key is known from the first release on',
  together: 'names',
  config: {
    server: {
      workers: 1,
      ssl: { enabled: false, cert: 'a', key: 'b' },
      cors: { enabled: true, origins: ['*'], methods: ['GET', 'POST', 'PUT', 'DELETE'] },
      rate_limit: { requests_per_minute: 60, requests_per_day: 1000 },
      auth: { enabled: false, api_key_env: 'SVC_API_KEY' },
    },
  },
  steps: [
    { request: chat({ message: 'a' }), expect: ok() },
    // nothing of the tool server, which is not switched on
    {
      request: get('/health'),
      expect: ok(exact({ status: 'healthy', version: any('text'), uptime_seconds: any('integer'), checks: any('object') })),
    },
  ],
})
