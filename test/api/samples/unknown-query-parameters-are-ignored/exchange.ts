import { exchange, get, invalid, ok } from '../../exchange.ts'

export default exchange({
  rule: 'ignores query parameters that it does not know, given twice too; one that it knows must not say two things',
  source: 'decisions.md 1: unknown body fields are ignored (v1 stays additive)',
  steps: [
    { request: get('/api/v1/conversations?utm=1&utm=2&__proto__=a'), expect: ok() },
    { request: get('/api/v1/modes?a=1&a=2'), expect: ok() },
    { request: get('/api/v1/conversations?limit=1&limit=2'), expect: invalid('limit') },
  ],
})
