import { exact, exchange, get, post, refused } from '../../exchange.ts'

export default exchange({
  rule: 'answers a path that is no route with 404 NOT_FOUND, and names those where one reads how the server is used',
  source: 'decisions.md 1, extension codes: NOT_FOUND',
  steps: [
    ...[
      '/',
      '/api',
      '/api/v1',
      '/api/v2/chat',
      '/api/v1/chats',
      '/API/V1/CHAT',
      '/api/v1/chat/stream/a/b',
      '/health/dead',
      '//health',
      '/.env',
      '/%2e%2e/health',
      '/api/v1/conversations/a/b',
    ].map(path => ({
      request: get(path),
      expect: refused(404, 'NOT_FOUND', exact({ see: ['/docs', '/openapi.json'] })),
    })),
    { request: post('/nowhere', { message: 'a' }), expect: refused(404, 'NOT_FOUND') },
    { request: { method: 'PUT', path: '/nowhere', raw: '{broken' }, expect: refused(404, 'NOT_FOUND') },
  ],
})
