import { chat, exchange, ok } from '../../exchange.ts'

const PROFILES = `
default: shared
profiles:
  shared:
    provider: local
    model: local-1
    fallback: [{ provider: second, model: local-1, weight: 1000000 }]
`
const times = <T>(count: number, step: T): readonly T[] => Array.from({ length: count }, () => step)

export default exchange({
  rule: 'answers a request with the provider or model that it names, although the profile shares its requests by weight',
  source: 'decisions.md 3, weights in a profile',
  alone: true,
  config: { providers: { local: {}, second: { type: 'local' } } },
  files: { 'profiles.yaml': PROFILES },
  steps: [
    ...times(3, { request: chat({ message: 'hi' }), expect: ok({ provider: 'second' }) }),
    ...times(3, { request: chat({ message: 'hi', provider: 'local' }), expect: ok({ provider: 'local', model: 'local-1' }) }),
    ...times(3, {
      request: chat({ message: 'hi', model: 'local-small' }),
      expect: ok({ provider: 'local', model: 'local-small' }),
    }),
  ],
})
