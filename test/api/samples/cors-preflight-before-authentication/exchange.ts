import { exchange, get, refused } from '../../exchange.ts'

const preflight = (path: string, origin: string) => ({
  method: 'OPTIONS',
  path,
  headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-api-key' },
})
const APP = 'https://app.example'

export default exchange({
  rule: 'answers a CORS preflight before authentication with what server.cors allows; refusals can be read by the page too',
  source: 'decisions.md 1, authentication exempt: CORS preflight; http-api.md, server.cors',
  together: 'auth',
  env: { SVC_API_KEY: 'the-key' },
  config: {
    server: { auth: { enabled: true }, cors: { origins: [APP], methods: ['GET', 'POST'], credentials: true, max_age: 60 } },
  },
  steps: [
    ...['/api/v1/chat', '/nowhere'].map(path => ({
      request: preflight(path, APP),
      expect: {
        status: 204,
        text: '',
        headers: {
          'access-control-allow-origin': APP,
          'access-control-allow-methods': 'GET, POST',
          'access-control-allow-headers':
            'Authorization, Content-Type, X-API-Key, X-Goog-Api-Key, Anthropic-Version, Anthropic-Beta, X-Request-Id, Prefer, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, traceparent, tracestate, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name',
          'access-control-allow-credentials': 'true',
          'access-control-max-age': '60',
        },
      },
    })),
    {
      request: preflight('/api/v1/chat', 'http://localhost:3000'),
      expect: refused(403, 'FORBIDDEN', { field: 'origin', value: 'http://localhost:3000' }),
    },
    {
      request: { ...get('/api/v1/status'), headers: { origin: APP } },
      expect: { ...refused(401, 'AUTHENTICATION_FAILED'), headers: { 'access-control-allow-origin': APP } },
    },
    { request: { method: 'OPTIONS', path: '/api/v1/chat' }, expect: refused(401, 'AUTHENTICATION_FAILED') },
  ],
})
