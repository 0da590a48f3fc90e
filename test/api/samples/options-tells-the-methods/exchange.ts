import { exchange, matching, refused } from '../../exchange.ts'

export default exchange({
  rule: 'answers OPTIONS on a route with the methods it has',
  source: 'RFC 9110, 9.3.7',
  steps: [
    { request: { method: 'OPTIONS', path: '/api/v1/chat' }, expect: { status: 204, headers: { allow: matching(/\bPOST\b/) } } },
    { request: { method: 'OPTIONS', path: '/nowhere' }, expect: refused(404, 'NOT_FOUND') },
  ],
})
