import { chat, exchange, invalid, matching } from '../../exchange.ts'

export default exchange({
  rule: 'tells in the reason what was expected and what was there',
  source: 'decisions.md 1: names the field and what was expected',
  steps: [
    { request: chat({ message: 7 }), expect: invalid('message', { value: 7, reason: matching(/string.*7/) }) },
    { request: chat({ message: 'a', temperature: 2 }), expect: invalid('temperature', { value: 2, reason: matching(/1.*2/) }) },
  ],
})
