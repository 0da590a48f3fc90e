import { exchange, oneOf } from '../../exchange.ts'

export default exchange({
  rule: 'answers half a surrogate pair, which JSON may escape, without a fault of its own',
  source: 'issue 3, bad input',
  steps: [
    { request: { method: 'POST', path: '/api/v1/chat', raw: '{"message":"a\\ud83d b"}' }, expect: { status: oneOf(200, 400) } },
    {
      request: { method: 'POST', path: '/api/v1/chat/stream', raw: '{"message":"a\\udca9 b"}' },
      expect: { status: oneOf(200, 400) },
    },
  ],
})
