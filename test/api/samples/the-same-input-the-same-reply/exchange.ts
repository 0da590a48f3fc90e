import { chat, exchange, field, ok } from '../../exchange.ts'

export default exchange({
  rule: 'answers the same input with the same reply',
  source: 'issue 3, 6: provider-local is deterministic',
  steps: [
    { request: chat({ message: 'again', temperature: 0.7 }), expect: ok() },
    { request: chat({ message: 'again', temperature: 0.7 }), expect: ([first]) => ok({ response: field(first, 'response') }) },
  ],
})
