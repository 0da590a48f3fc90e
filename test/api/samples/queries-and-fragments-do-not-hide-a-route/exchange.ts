import { chat, exchange, get, invalid, ok } from '../../exchange.ts'

export default exchange({
  rule: 'finds a route whatever its query says',
  source: 'http-api.md "Endpoints"',
  steps: [
    { request: get('/health?'), expect: ok() },
    { request: get('/health?a=b&c'), expect: ok() },
    { request: get('/health/live?%'), expect: ok() },
    { request: get('/api/v1/tools?__proto__=1'), expect: invalid('__proto__') },
    { request: { ...chat({ message: 'a' }), path: '/api/v1/chat?message=b' }, expect: invalid('message') },
    { request: { ...chat({ message: 'a' }), path: '/api/v1/chat?' }, expect: ok({ response: 'You said: a' }) },
  ],
})
