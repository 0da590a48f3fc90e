import { exchange, wire } from '../../exchange.ts'

export default exchange({
  rule: 'answers headers that are too large with an error record',
  source: 'issue 3, bad input; decisions.md 1: PAYLOAD_TOO_LARGE',
  steps: [
    {
      request: wire(['GET /health HTTP/1.1', 'Host: localhost', `X-Large: ${'a'.repeat(100_000)}`]),
      expect: { status: 413, body: { success: false, error_code: 'PAYLOAD_TOO_LARGE' } },
    },
  ],
})
