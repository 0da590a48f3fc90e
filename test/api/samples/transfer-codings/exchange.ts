import { exchange, ok, refused, wire } from '../../exchange.ts'

const head = (coding: string, path = '/api/v1/chat') => [
  `POST ${path} HTTP/1.1`,
  'Host: localhost',
  'Content-Type: application/json',
  `Transfer-Encoding: ${coding}`,
]
const chunked = 'f\r\n{"message":"a"}\r\n0\r\n\r\n'

export default exchange({
  rule: 'takes bodies in chunks and in no other transfer coding',
  source: 'issue 3, bad input: a body that cannot be read is 415',
  steps: [
    { request: wire([...head('chunked'), 'Connection: close'], chunked), expect: ok({ response: 'You said: a' }) },
    { request: wire(head('gzip, chunked'), chunked), expect: refused(415, 'UNSUPPORTED_MEDIA_TYPE') },
    { request: wire([...head('deflate, chunked', '/nowhere'), 'Connection: close'], chunked), expect: refused(404, 'NOT_FOUND') },
  ],
})
