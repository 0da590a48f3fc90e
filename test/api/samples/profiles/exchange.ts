import { exact, exchange, get, ok } from '../../exchange.ts'

const careful = `
default: default
profiles:
  default: {}
  careful: { description: Slow and sure, provider: local, model: local-small, temperature: 0.1, max_tokens: 7, system_prompt: Be careful, mode: review }
`

export default exchange({
  rule: 'lists the profiles of the profile file as records, and which is active',
  source: 'http-api.md "Profiles and mode"; decisions.md 1, profile record, `GET /profiles`',
  alone: true,
  files: { 'profiles.yaml': careful },
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
          ],
          active: 'default',
        })
      ),
    },
  ],
})
