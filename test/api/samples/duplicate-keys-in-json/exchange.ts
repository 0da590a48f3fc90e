import { exchange, ok } from '../../exchange.ts'

export default exchange({
  rule: 'takes the last of two keys of the same name, as JSON in JavaScript does',
  source: 'issue 3, bad input',
  steps: [
    {
      request: { method: 'POST', path: '/api/v1/chat', raw: '{"message":"first","message":"last"}' },
      expect: ok({ response: 'You said: last' }),
    },
  ],
})
