import { type Answer, any, chat, exchange, field, ok, refused, say, stream } from '../../exchange.ts'

const again = ([first]: readonly Answer[]) => ({ message: 'two', conversation_id: field(first, 'conversation_id') })
const full = refused(400, 'INVALID_VALUE', { field: 'conversation_id', limit: 2, reason: any('text') })

export default exchange({
  rule: 'refuses another turn of a conversation that has reached its limit, with the limit',
  source: 'decisions.md 1, conversations: size',
  together: 'sizes',
  config: { conversations: { max_messages: 2 } },
  steps: [
    { request: chat({ message: 'one' }), expect: ok() },
    { request: answers => chat(again(answers)), expect: full },
    { request: answers => stream(again(answers)), expect: full },
    { request: answers => say(again(answers)), expect: full },
  ],
})
