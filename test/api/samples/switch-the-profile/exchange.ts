import { chat, exact, exchange, get, ok, post, PROFILES } from '../../exchange.ts'

export default exchange({
  rule: 'switches the profile for the turns to come, clears the override and answers with what is in force',
  source: 'http-api.md "States and transitions", active profile; decisions.md 1, switch answers',
  together: 'switches',
  files: PROFILES,
  steps: [
    { request: post('/api/v1/model/switch', { provider: 'local', model: 'local-1' }), expect: ok() },
    {
      request: post('/api/v1/profile/switch', { profile: 'small' }),
      expect: ok(
        exact({
          success: true,
          profile: 'small',
          effective: {
            profile: 'small',
            provider: 'local',
            model: 'local-small',
            override: null,
            source: { provider: 'profile', model: 'profile' },
          },
        })
      ),
    },
    { request: get('/api/v1/config/effective'), expect: ok({ profile: 'small', override: null, model: 'local-small' }) },
    {
      request: get('/api/v1/profiles'),
      expect: ok({
        active: 'small',
        profiles: [
          { name: 'default', active: false, is_default: true },
          { name: 'careful', active: false },
          { name: 'short', active: false },
          { name: 'small', active: true },
        ],
      }),
    },
    { request: chat({ message: 'a' }), expect: ok({ model: 'local-small' }) },
  ],
})
