import { exchange, invalid, matching, ok, refused, wire } from '../../exchange.ts'

const head = ['POST /api/v1/chat HTTP/1.1', 'Connection: close', 'Content-Length: 15']
const json = 'Content-Type: application/json'
const host = 'Host: localhost'
const body = '{"message":"a"}'

export default exchange({
  rule: 'refuses two Hosts and two media types; two request ids count as none',
  source: 'issue 3, bad input: duplicate and contradictory headers',
  steps: [
    { request: wire([...head, json, host, 'Host: elsewhere'], body), expect: invalid('host') },
    { request: wire([...head, json], body), expect: invalid('host') },
    { request: wire([...head, host, json, 'Content-Type: text/plain'], body), expect: invalid('content-type') },
    {
      request: wire([...head, host, json, 'X-Request-Id: a', 'X-Request-Id: b'], body),
      expect: ok({ response: 'You said: a' }, { 'x-request-id': matching(/^[A-Za-z0-9._-]{8,}$/) }),
    },
    { request: wire([...head, host], body), expect: refused(415, 'UNSUPPORTED_MEDIA_TYPE') },
  ],
})
