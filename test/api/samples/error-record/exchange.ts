import { any, chat, exact, exchange, get, remove } from '../../exchange.ts'

const record = exact({ success: false, error: any('text'), error_code: any('text'), details: any('object') })

export default exchange({
  rule: 'returns every error as a record of success false, message, code and details',
  source: 'http-api.md "Errors"',
  steps: [
    { request: chat({}), expect: { status: 400, body: record } },
    { request: chat({ message: 7 }), expect: { status: 400, body: record } },
    { request: chat({ message: 'a', provider: 'x' }), expect: { status: 503, body: record } },
    { request: chat({ message: 'a', model: 'x' }), expect: { status: 404, body: record } },
    { request: chat({ message: '/fail network' }), expect: { status: 503, body: record } },
    { request: get('/nowhere'), expect: { status: 404, body: record } },
    { request: remove('/api/v1/chat'), expect: { status: 405, body: record } },
    {
      request: { method: 'POST', path: '/api/v1/chat', raw: 'a', headers: { 'content-type': 'text/plain' } },
      expect: { status: 415, body: record },
    },
  ],
})
