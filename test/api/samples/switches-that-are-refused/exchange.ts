import { exact, exchange, get, invalid, missing, ok, post, refused } from '../../exchange.ts'

const unchanged = {
  request: get('/api/v1/config/effective'),
  expect: ok({ profile: 'default', mode: 'build', override: null, model: 'local-1' }),
}

export default exchange({
  rule: 'refuses a switch to what there is not, says what there is, and changes nothing',
  source: 'decisions.md 1, a switch with an unknown profile or mode',
  steps: [
    {
      request: post('/api/v1/profile/switch', { profile: 'nobody' }),
      expect: invalid('profile', { value: 'nobody', allowed: ['default'] }),
    },
    {
      request: post('/api/v1/mode/switch', { mode: 'nothing' }),
      expect: invalid('mode', { value: 'nothing', allowed: ['build', 'plan', 'review', 'delegate', 'explore'] }),
    },
    {
      request: post('/api/v1/model/switch', { provider: 'nobody', model: 'local-1' }),
      expect: refused(503, 'PROVIDER_NOT_FOUND', exact({ provider: 'nobody', available: ['local'] })),
    },
    {
      request: post('/api/v1/model/switch', { provider: 'local', model: 'nothing' }),
      expect: refused(
        404,
        'MODEL_NOT_FOUND',
        exact({ provider: 'local', model: 'nothing', available: ['local-1', 'local-small'] })
      ),
    },
    ...['__proto__', 'constructor', 'Default', ' default', 'a'.repeat(10_000)].flatMap(name => [
      { request: post('/api/v1/profile/switch', { profile: name }), expect: invalid('profile') },
      { request: post('/api/v1/mode/switch', { mode: name }), expect: invalid('mode') },
      { request: post('/api/v1/model/switch', { provider: name, model: 'local-1' }), expect: refused(503, 'PROVIDER_NOT_FOUND') },
      { request: post('/api/v1/model/switch', { provider: 'local', model: name }), expect: refused(404, 'MODEL_NOT_FOUND') },
    ]),
    { request: post('/api/v1/model/switch', { model: 'local-small' }), expect: missing(['provider', 'model'], ['model']) },
    unchanged,
  ],
})
