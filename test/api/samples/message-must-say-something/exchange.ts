import { chat, exchange, invalid, say, stream } from '../../exchange.ts'

export default exchange({
  rule: 'refuses a message that is no text, or empty or blank text',
  source: 'decisions.md 1: null, wrong type, empty or blank text is INVALID_VALUE and names the field',
  steps: [chat, stream, say].flatMap(ask =>
    ['', '   ', '\n\t ', null, 7, true, ['a'], { text: 'a' }].map(message => ({
      request: ask({ message }),
      expect: invalid('message'),
    }))
  ),
})
