import { any, exact, exchange, get, ok } from '../../exchange.ts'

export default exchange({
  rule: 'tells callers who they are and what they may do',
  source: 'docs/reference/http.md',
  together: 'auth',
  env: { SVC_API_KEY: 'the-key' },
  config: { server: { auth: { enabled: true } } },
  steps: [
    {
      request: { ...get('/api/v1/me'), headers: { 'x-api-key': 'the-key' } },
      expect: ok(exact({ principal: any('text'), scopes: ['*'], scheme: any('text'), expires: null })),
    },
  ],
})
