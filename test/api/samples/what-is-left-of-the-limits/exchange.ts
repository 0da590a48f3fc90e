import { any, exact, exchange, get, invalid, ok } from '../../exchange.ts'

const window = (name: string, seconds: number, limit: number) =>
  exact({ name, window: seconds, limit, used: 0, remaining: limit, reset: null })

export default exchange({
  rule: 'tells the limits, whose requests are counted, and what is left of them',
  source: 'console.md 3, limits',
  steps: [
    {
      request: get('/api/v1/limits'),
      expect: ok(
        exact({
          enabled: false,
          by: 'address',
          client: any('text'),
          limits: [window('requests_per_minute', 60, 60), window('requests_per_day', 86_400, 1_000)],
        })
      ),
    },
    { request: get('/api/v1/limits?address=nowhere'), expect: invalid('address', { value: 'nowhere' }) },
    { request: get('/api/v1/limits?principal=anna'), expect: invalid('principal', { value: 'anna' }) },
  ],
})
