import { absent, chat, exchange, get, matching, ok, refused } from '../../exchange.ts'

const from = (origin: string) => ({ headers: { origin } })

export default exchange({
  rule: 'lets pages of this machine use the server and read its headers; any other Origin gets 403, everywhere',
  source: 'decisions.md 1, host: server.cors.origins, default: loopback origins',
  steps: [
    ...['http://localhost:3000', 'http://127.0.0.1:5173', 'https://[::1]'].map(origin => ({
      request: { ...chat({ message: 'a' }), ...from(origin) },
      expect: ok(undefined, {
        'access-control-allow-origin': origin,
        'access-control-allow-credentials': absent,
        'access-control-expose-headers': matching(/X-Request-Id.*ETag.*X-RateLimit-Limit.*Retry-After/),
        vary: 'Origin',
      }),
    })),
    { request: get('/health'), expect: ok(undefined, { vary: 'Origin', 'access-control-allow-origin': absent }) },
    ...['https://evil.example', 'null', 'http://localhost.evil.example', 'file://'].flatMap(origin =>
      [get('/health'), chat({ message: 'a' }), get('/nowhere'), { method: 'OPTIONS', path: '/api/v1/chat' }].map(request => ({
        request: { ...request, ...from(origin) },
        expect: {
          ...refused(403, 'FORBIDDEN', { field: 'origin', value: origin }),
          headers: { 'access-control-allow-origin': absent },
        },
      }))
    ),
  ],
})
