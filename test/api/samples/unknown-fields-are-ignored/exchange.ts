import { chat, exchange, ok, say } from '../../exchange.ts'

export default exchange({
  rule: 'ignores unknown fields of a body',
  source: 'decisions.md 1: unknown body fields are ignored (v1 stays additive)',
  steps: [
    {
      request: chat({ message: 'a', colour: 'blue', nested: { deep: [1] }, constructor: 1, toString: 2 }),
      expect: {
        ...ok({ response: 'You said: a' }),
        headers: { 'x-ignored-fields': 'colour, nested, constructor, toString' },
      },
    },
    { request: say({ message: 'a', temperature: 99 }), expect: ok({ response: 'You said: a' }) },
  ],
})
