import { exchange, get, ok, refused, wire } from '../../exchange.ts'

const with_ = (headers: Readonly<Record<string, string>>) => ({ ...get('/api/v1/status'), headers })
const twice = (line: string, other = line) =>
  wire(['GET /api/v1/status HTTP/1.1', 'Host: localhost', 'Connection: close', line, other])
const expected = refused(401, 'AUTHENTICATION_FAILED')

export default exchange({
  rule: 'takes one credential in any of three headers; refuses two that differ, and the same header twice',
  source: 'decisions.md 1, bearer tokens: wrong, expired, revoked or two different credentials: 401',
  together: 'auth',
  env: { SVC_API_KEY: 'the-key' },
  config: { server: { auth: { enabled: true } } },
  steps: [
    { request: with_({ 'x-api-key': 'the-key', authorization: 'Bearer svc_wrong' }), expect: expected },
    { request: twice('X-API-Key: the-key'), expect: expected },
    { request: twice('X-API-Key: the-key', 'X-API-Key: wrong'), expect: expected },
    { request: twice('Authorization: Bearer a', 'Authorization: Bearer b'), expect: expected },
    { request: with_({ 'x-api-key': '' }), expect: expected },
    { request: with_({ authorization: 'the-key' }), expect: expected },
    { request: with_({ authorization: 'Basic dGhlLWtleQ==' }), expect: expected },
    { request: with_({ 'x-api-key': 'the-key' }), expect: ok() },
    { request: with_({ authorization: 'Bearer the-key' }), expect: ok() },
    { request: with_({ 'x-goog-api-key': 'the-key' }), expect: ok() },
    { request: with_({ 'x-api-key': 'the-key', authorization: 'Bearer the-key', 'x-goog-api-key': 'the-key' }), expect: ok() },
  ],
})
