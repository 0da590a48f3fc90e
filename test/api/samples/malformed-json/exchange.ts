import { eachBodyRoute, exchange, invalid } from '../../exchange.ts'

const broken = [
  '{',
  '{"message":',
  '{"message":"a"',
  '{"message":"a"}}',
  "{'message':'a'}",
  '{"message":"a",}',
  'message=a',
  '\u0000',
  '{"message":"\n"}',
  '{"message":"\\ud83"}',
  '\uFEFF{"message"',
]

export default exchange({
  rule: 'refuses malformed JSON and names the body',
  source: 'decisions.md 1, malformed JSON',
  steps: eachBodyRoute(path => broken.map(raw => ({ request: { method: 'POST', path, raw }, expect: invalid('body') }))),
})
