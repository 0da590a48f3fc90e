import { chat, exchange, get, ok } from '../../exchange.ts'

const profiles = 'default: default\nprofiles: { default: {}, small: { provider: local, model: local-small, mode: review } }'

export default exchange({
  rule: 'starts with the profile and mode of --profile and --mode',
  source: 'http-api.md "Server start command"; decisions.md 1, mode in force: else --mode, else the profile\'s',
  together: 'degraded',
  files: { 'profiles.yaml': profiles },
  args: ['--profile', 'small', '--mode', 'explore'],
  steps: [
    {
      request: get('/api/v1/config/effective'),
      expect: ok({ profile: 'small', model: 'local-small', mode: 'explore', override: null, source: { model: 'profile' } }),
    },
    { request: chat({ message: 'a' }), expect: ok({ model: 'local-small' }) },
  ],
})
