import { eachBodyRoute, exchange, missing } from '../../exchange.ts'

export default exchange({
  rule: 'takes no body like one without fields',
  source: 'decisions.md 1: an absent required field is MISSING_FIELD',
  steps: eachBodyRoute((path, { required }) => [
    { request: { method: 'POST', path }, expect: missing(required, []) },
    { request: { method: 'POST', path, raw: '' }, expect: missing(required, []) },
  ]),
})
