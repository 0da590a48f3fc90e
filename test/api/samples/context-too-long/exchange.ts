import { any, chat, exchange, from, invalid, stream } from '../../exchange.ts'

export default exchange({
  rule: 'refuses what the context of the model cannot hold, with the limit and the count',
  source: 'decisions.md 1, context too long',
  steps: [
    {
      request: chat({ message: '/fail context_too_long' }),
      expect: invalid('message', { limit: any('integer'), count: any('integer') }),
    },
    ...[chat, stream].map(ask => ({
      request: ask({ message: 'word '.repeat(9000), model: 'local-small' }),
      expect: invalid('message', { limit: 8192, count: from(8193) }),
    })),
  ],
})
