import { chat, exact, exchange, get, ok, post, say } from '../../exchange.ts'

export default exchange({
  rule: 'overrides provider and model for the turns to come and leaves the profile as it is',
  source: 'http-api.md "States and transitions", provider/model override; decisions.md 1, switch answers',
  together: 'switches',
  steps: [
    {
      request: post('/api/v1/model/switch', { provider: 'local', model: 'local-small' }),
      expect: ok(
        exact({
          success: true,
          provider: 'local',
          model: 'local-small',
          effective: {
            profile: 'default',
            provider: 'local',
            model: 'local-small',
            override: exact({ provider: 'local', model: 'local-small' }),
            source: { provider: 'override', model: 'override' },
          },
        })
      ),
    },
    { request: chat({ message: 'a' }), expect: ok({ model: 'local-small' }) },
    { request: say({ message: 'a', model: 'local-1' }), expect: ok() },
    { request: chat({ message: 'a', model: 'local-1' }), expect: ok({ model: 'local-1' }) },
    { request: get('/api/v1/config/effective'), expect: ok({ profile: 'default', override: { model: 'local-small' } }) },
  ],
})
