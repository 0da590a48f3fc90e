import { any, exchange } from '../../exchange.ts'

export default exchange({
  rule: 'answers what is no HTTP with an error record and closes',
  source: 'issue 3, bad input',
  steps: [
    'HELLO\r\n\r\n',
    'GET /health HTTP/9.9\r\nHost: x\r\n\r\n',
    'GET /he alth HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET /health HTTP/1.1\r\nHost: x\r\nNo colon here\r\n\r\n',
    'GET /health HTTP/1.1\r\nHost: x\r\nX: a\u0000b\r\n\r\n',
    '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\r\n\r\n',
  ].map(text => ({
    request: { wire: text },
    expect: { status: 400, body: { success: false, error_code: 'INVALID_VALUE', details: any('object') } },
  })),
})
