import { any, exchange, wire } from '../../exchange.ts'

const head = ['POST /api/v1/chat HTTP/1.1', 'Host: localhost', 'Connection: close', 'Content-Type: application/json']
const body = '{"message":"a"}'

export default exchange({
  rule: 'refuses a body whose length is given twice or in two ways',
  source: 'issue 3, bad input: duplicate and contradictory headers',
  steps: [
    ['Content-Length: 15', 'Content-Length: 16'],
    ['Content-Length: 15', 'Content-Length: 15'],
    ['Content-Length: 15', 'Transfer-Encoding: chunked'],
    ['Content-Length: 15, 16'],
    ['Content-Length: -1'],
    ['Content-Length: 0x0f'],
    ['Transfer-Encoding: chunked, identity'],
    ['Transfer-Encoding: nonsense'],
  ].map(lines => ({
    request: wire([...head, ...lines], body),
    expect: { status: 400, body: { success: false, error_code: 'INVALID_VALUE', details: any('object') } },
  })),
})
