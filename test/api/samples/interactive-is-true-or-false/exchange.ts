import { exchange, invalid, stream } from '../../exchange.ts'

export default exchange({
  rule: 'takes `interactive` of a stream as true or false only',
  source: 'an extension of v1: `interactive`',
  steps: [{ request: stream({ message: 'hi', interactive: 'yes' }), expect: invalid('interactive') }],
})
