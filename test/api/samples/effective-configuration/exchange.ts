import { exact, exchange, get, ok } from '../../exchange.ts'

export default exchange({
  rule: 'tells profile, provider, model, mode, override, all profiles and modes, and where provider and model come from',
  source: 'http-api.md "Runtime configuration"; decisions.md 1, effective configuration',
  steps: [
    {
      request: get('/api/v1/config/effective'),
      expect: ok(
        exact({
          profile: 'default',
          provider: 'local',
          model: 'local-1',
          mode: 'build',
          override: null,
          profiles: ['default'],
          modes: ['build', 'plan', 'review', 'delegate', 'explore'],
          source: exact({ provider: 'default', model: 'default' }),
        })
      ),
    },
  ],
})
