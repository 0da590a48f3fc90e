import { exchange, refused, wire } from '../../exchange.ts'

const chunk = `4000\r\n${'a'.repeat(0x4000)}\r\n`

export default exchange({
  rule: 'refuses a body over 1 MiB that does not tell its length',
  source: 'decisions.md 1, sizes: body 1 MiB; issue 3, bad input: 2 MiB bodies',
  steps: ['/api/v1/conversations', '/api/v1/chat/answer'].map(path => ({
    request: wire(
      [
        `POST ${path} HTTP/1.1`,
        'Host: localhost',
        'Connection: close',
        'Content-Type: application/json',
        'Transfer-Encoding: chunked',
      ],
      `${chunk.repeat(128)}0\r\n\r\n`
    ),
    expect: refused(413, 'PAYLOAD_TOO_LARGE', { limit: 1_048_576 }),
  })),
})
