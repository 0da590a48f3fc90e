import { eachBodyRoute, exchange, refused } from '../../exchange.ts'

const types = [
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/xml',
  'application/json; charset=utf-16',
  'application/jsonp',
  '*/*',
  'json',
]

export default exchange({
  rule: 'refuses a body that is not declared as JSON',
  source: 'http-api.md: Content-Type: application/json; decisions.md 1: UNSUPPORTED_MEDIA_TYPE 415',
  steps: eachBodyRoute((path, { good }) =>
    types.map(type => ({
      request: { method: 'POST', path, raw: JSON.stringify(good), headers: { 'content-type': type } },
      expect: refused(415, 'UNSUPPORTED_MEDIA_TYPE'),
    }))
  ),
})
