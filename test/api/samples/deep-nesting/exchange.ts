import { eachBodyRoute, exchange, invalid } from '../../exchange.ts'

const deep = (open: string, close: string, levels: number) =>
  `{"message":"a","more":${open.repeat(levels)}1${close.repeat(levels)}}`

export default exchange({
  rule: 'refuses a body that is nested too deep',
  source: 'issue 3, bad input: deep nesting',
  steps: eachBodyRoute(path => [
    { request: { method: 'POST', path, raw: deep('[', ']', 10_000) }, expect: invalid('body') },
    { request: { method: 'POST', path, raw: deep('{"a":', '}', 10_000) }, expect: invalid('body') },
    { request: { method: 'POST', path, raw: '['.repeat(500_000) }, expect: invalid('body') },
  ]),
})
