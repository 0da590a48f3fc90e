import { any, beside, exchange, get, ok, refused, without } from '../../exchange.ts'

const expected = {
  ...refused(500, 'INTERNAL_ERROR'),
  headers: { 'x-request-id': any('text') },
  text: without(/secret|hunter2|\.ts|at .*:\d+/),
}

export default exchange({
  rule: 'tells an internal fault without stack, path or secret',
  source: 'decisions.md 1, extension codes: INTERNAL_ERROR 500',
  together: 'parts',
  config: { plugins: [beside('./plugin.ts', import.meta.url)] },
  args: ['--debug'],
  steps: [
    { request: get('/boom'), expect: expected },
    { request: get('/burst'), expect: expected },
    { request: get('/health'), expect: ok({ status: 'healthy' }) },
  ],
})
