import { any, chat, exchange, get, including, invalid, ok } from '../../exchange.ts'

export default exchange({
  rule: 'counts requests, tokens and costs by principal, model and more, in sums and over time',
  source: 'console.md 3, usage',
  alone: true,
  steps: [
    { request: chat({ message: 'hello' }), expect: ok() },
    {
      request: get('/api/v1/usage?by=model'),
      expect: ok({
        by: 'model',
        currency: 'USD',
        rows: [{ name: 'local/local-1', calls: 1, failures: 0, input_tokens: any('integer'), cost: 0 }],
        total: { calls: 1 },
      }),
    },
    {
      request: get('/api/v1/series?metric=requests&by=route&step=hour'),
      expect: ok({
        metric: 'requests',
        unit: 'requests',
        step: 'hour',
        series: including({ name: 'POST /api/v1/chat', total: 1 }),
      }),
    },
    { request: get('/api/v1/series?metric=tokens&by=route'), expect: invalid('by', { value: 'route', allowed: any('array') }) },
    { request: get('/api/v1/usage?by=colour'), expect: invalid('by') },
    {
      request: get('/api/v1/usage?from=2030-01-02T00:00:00Z&to=2030-01-01T00:00:00Z'),
      expect: invalid('from', { value: '2030-01-02T00:00:00Z' }),
    },
  ],
})
