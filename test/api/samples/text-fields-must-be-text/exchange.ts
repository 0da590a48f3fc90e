import { chat, exchange, invalid, say, stream } from '../../exchange.ts'

export default exchange({
  rule: 'refuses every text field that is no text, or empty or blank text, and names it',
  source: 'decisions.md 1: null, wrong type, empty or blank text is INVALID_VALUE and names the field',
  steps: [chat, stream, say].flatMap(ask =>
    ['provider', 'model', 'conversation_id'].flatMap(name =>
      ['', ' ', null, 7, ['a'], {}].map(value => ({ request: ask({ message: 'a', [name]: value }), expect: invalid(name) }))
    )
  ),
})
