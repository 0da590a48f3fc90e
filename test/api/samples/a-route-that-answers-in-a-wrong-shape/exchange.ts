import { any, beside, exchange, get, ok, refused } from '../../exchange.ts'

export default exchange({
  rule: 'answers 500 where the route of a plugin answers in a wrong shape',
  source: 'decisions.md 1, extension codes: INTERNAL_ERROR 500',
  together: 'parts',
  config: { plugins: [beside('./plugin.ts', import.meta.url)] },
  steps: [
    ...['nothing', 'text', 'status', 'header', 'stream'].map(name => ({
      request: get(`/wrong/${name}`),
      expect: refused(500, 'INTERNAL_ERROR', { request_id: any('text') }),
    })),
    { request: get('/health'), expect: ok({ status: 'healthy' }) },
  ],
})
