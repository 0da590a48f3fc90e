import { any, exact, exchange, get, ok } from '../../exchange.ts'

export default exchange({
  rule: 'lists the five modes with descriptions, and which is active',
  source: 'http-api.md "Profiles and mode"; decisions.md 1, `GET /modes`',
  steps: [
    {
      request: get('/api/v1/modes'),
      expect: ok(
        exact({
          modes: ['build', 'plan', 'review', 'delegate', 'explore'].map(name => exact({ name, description: any('text') })),
          active: 'build',
        })
      ),
    },
  ],
})
