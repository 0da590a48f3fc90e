import { any, chat, exchange, list, missing, post } from '../../exchange.ts'

export default exchange({
  rule: 'tells a missing field before any other fault',
  source: 'decisions.md 1, malformed JSON: an absent required field wins over other faults',
  steps: [
    {
      request: chat({ temperature: 'hot', conversation_id: 'nobody', provider: 'nobody' }),
      expect: missing(['message'], list(any('text'), 3)),
    },
    { request: post('/api/v1/model/switch', { provider: 7 }), expect: missing(['provider', 'model'], ['provider']) },
  ],
})
