import { absent, exchange, get, post } from '../../exchange.ts'

export default exchange({
  rule: 'keeps browsers from taking an answer for what it is not: security headers on every answer, and no word of what it runs on',
  source: 'issue 4, 3: security headers',
  steps: [
    get('/health'),
    get('/nowhere'),
    get('/metrics'),
    post('/api/v1/chat', {}),
    post('/api/v1/chat/stream', { message: 'a' }),
  ].map(request => ({
    request,
    expect: {
      status: { '/health': 200, '/metrics': 200, '/nowhere': 404, '/api/v1/chat': 400, '/api/v1/chat/stream': 200 }[request.path],
      headers: {
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'content-security-policy': "default-src 'none';frame-ancestors 'none'",
        'cross-origin-resource-policy': 'same-origin',
        'strict-transport-security': absent,
        'x-powered-by': absent,
        server: absent,
      },
    },
  })),
})
