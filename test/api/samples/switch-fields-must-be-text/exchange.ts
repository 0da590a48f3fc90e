import { exchange, invalid, post } from '../../exchange.ts'

const wrong = ['', ' ', null, 7, false, ['a'], {}]

export default exchange({
  rule: 'refuses a switch whose field is no text, or empty or blank text, and names it',
  source: 'decisions.md 1: null, wrong type, empty or blank text is INVALID_VALUE and names the field',
  steps: [
    ...wrong.map(profile => ({ request: post('/api/v1/profile/switch', { profile }), expect: invalid('profile') })),
    ...wrong.map(mode => ({ request: post('/api/v1/mode/switch', { mode }), expect: invalid('mode') })),
    ...wrong.map(provider => ({
      request: post('/api/v1/model/switch', { provider, model: 'local-1' }),
      expect: invalid('provider'),
    })),
    ...wrong.map(model => ({ request: post('/api/v1/model/switch', { provider: 'local', model }), expect: invalid('model') })),
  ],
})
