import { chat, exchange, invalid, stream } from '../../exchange.ts'

export default exchange({
  rule: 'refuses a max_tokens that is not an integer from 1 to the limit of the model',
  source: "decisions.md 1, sizes: max_tokens 1 up to the model's limit",
  steps: [chat, stream].flatMap(ask => [
    ...[0, -1, 1.5, '5', null, [5]].map(max_tokens => ({
      request: ask({ message: 'a', max_tokens }),
      expect: invalid('max_tokens'),
    })),
    { request: ask({ message: 'a', max_tokens: 4097 }), expect: invalid('max_tokens', { value: 4097, limit: 4096 }) },
    { request: ask({ message: 'a', max_tokens: 1025, model: 'local-small' }), expect: invalid('max_tokens', { limit: 1024 }) },
    { request: ask({ message: 'a', max_tokens: 9_007_199_254_740_991 }), expect: invalid('max_tokens') },
  ]),
})
