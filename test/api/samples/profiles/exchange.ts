import { exact, exchange, get, ok, PROFILES } from '../../exchange.ts'

export default exchange({
  rule: 'lists the profiles of the profile file as records, and which is active',
  source: 'http-api.md "Profiles and mode"; decisions.md 1, profile record, `GET /profiles`',
  together: 'switches',
  files: PROFILES,
  steps: [
    {
      request: get('/api/v1/profiles'),
      expect: ok(
        exact({
          profiles: [
            exact({
              name: 'default',
              provider: null,
              model: null,
              description: null,
              temperature: null,
              max_tokens: null,
              is_default: true,
              active: true,
            }),
            exact({
              name: 'careful',
              provider: 'local',
              model: 'local-small',
              description: 'Slow and sure',
              temperature: 0.1,
              max_tokens: 7,
              is_default: false,
              active: false,
            }),
            { name: 'short', model: 'local-small', max_tokens: 5, active: false },
            { name: 'small', provider: 'local', active: false },
          ],
          active: 'default',
        })
      ),
    },
  ],
})
