import { exchange, get, ok } from '../../exchange.ts'

const profiles = 'default: small\nprofiles: { small: { mode: review } }'

export default exchange({
  rule: 'takes the default profile from the file and its mode where the request names no other',
  source: 'decisions.md 1, mode in force; profiles.yaml',
  together: 'start',
  files: { 'profiles.yaml': profiles },
  steps: [
    {
      request: get('/api/v1/config/effective'),
      expect: ok({ profile: 'small', mode: 'review', profiles: ['small'], source: { model: 'default' } }),
    },
    {
      request: get('/api/v1/profiles'),
      expect: ok({ profiles: [{ name: 'small', is_default: true, active: true }], active: 'small' }),
    },
  ],
})
