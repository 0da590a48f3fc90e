import { type Answer, any, chat, exchange, field, from, get, list, ok } from '../../exchange.ts'

const long = 'word '.repeat(3000)

export default exchange({
  rule: 'leaves the oldest turns out for a model whose context cannot hold them all, instead of refusing',
  source: 'decisions.md 1, providers: local-small is for trimming',
  steps: [
    { request: chat({ message: long, model: 'local-small', max_tokens: 5 }), expect: ok() },
    ...[1, 2].map(() => ({
      request: ([first]: readonly Answer[]) =>
        chat({ message: long, model: 'local-small', max_tokens: 5, conversation_id: field(first, 'conversation_id') }),
      expect: ok({ tokens_used: { input: from(3000, 8192) } }),
    })),
    {
      request: ([first]) => get(`/api/v1/conversations/${field(first, 'conversation_id')}`),
      expect: ok({ message_count: 6, messages: list(any('object'), 6) }),
    },
  ],
})
