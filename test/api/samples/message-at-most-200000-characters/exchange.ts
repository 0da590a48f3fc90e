import { chat, exchange, invalid, ok, say, stream } from '../../exchange.ts'

export default exchange({
  rule: 'takes a message of 200,000 characters and none longer',
  source: 'decisions.md 1, sizes',
  steps: [
    { request: chat({ message: 'word '.repeat(40_000), max_tokens: 3 }), expect: ok() },
    ...[chat, stream, say].map(ask => ({
      request: ask({ message: 'x'.repeat(200_001) }),
      expect: invalid('message', { limit: 200_000, count: 200_001 }),
    })),
  ],
})
