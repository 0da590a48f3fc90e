import { eachBodyRoute, exchange, missing, post } from '../../exchange.ts'

export default exchange({
  rule: 'names all required fields of the endpoint, whichever is missing',
  source: "decisions.md 1: required_fields = all of the endpoint's",
  steps: eachBodyRoute((path, { required }) => [{ request: post(path, { more: 1 }), expect: missing(required, ['more']) }]),
})
