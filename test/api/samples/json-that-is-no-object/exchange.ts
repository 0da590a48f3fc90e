import { eachBodyRoute, exchange, invalid } from '../../exchange.ts'

export default exchange({
  rule: 'refuses JSON that is no object and names the body',
  source: 'decisions.md 1, JSON that is no object',
  steps: eachBodyRoute(path =>
    ['[]', '[{"message":"a"}]', '"a"', '7', 'true', 'null'].map(raw => ({
      request: { method: 'POST', path, raw },
      expect: invalid('body'),
    }))
  ),
})
