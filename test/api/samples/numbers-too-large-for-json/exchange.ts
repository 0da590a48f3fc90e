import { exchange, invalid } from '../../exchange.ts'

export default exchange({
  rule: 'refuses numbers that are no finite ones',
  source: 'issue 3, bad input: out-of-range numbers',
  steps: [
    {
      request: { method: 'POST', path: '/api/v1/chat', raw: '{"message":"a","temperature":1e999}' },
      expect: invalid('temperature'),
    },
    {
      request: { method: 'POST', path: '/api/v1/chat', raw: '{"message":"a","max_tokens":1e999}' },
      expect: invalid('max_tokens'),
    },
    { request: { method: 'POST', path: '/api/v1/chat', raw: '{"message":"a","max_tokens":NaN}' }, expect: invalid('body') },
  ],
})
