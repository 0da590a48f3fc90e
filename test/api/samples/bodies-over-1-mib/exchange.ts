import { chat, eachBodyRoute, exchange, ok, post, refused } from '../../exchange.ts'

const large = { message: 'a'.repeat(2 * 1024 * 1024), profile: 'a', provider: 'a', model: 'a', mode: 'a' }

export default exchange({
  rule: 'refuses a body over 1 MiB with the limit',
  source: 'decisions.md 1, sizes: body 1 MiB; PAYLOAD_TOO_LARGE 413',
  steps: [
    ...eachBodyRoute(path => [{ request: post(path, large), expect: refused(413, 'PAYLOAD_TOO_LARGE', { limit: 1_048_576 }) }]),
    { request: chat({ message: 'a', more: 'b'.repeat(1_048_576 - 50) }), expect: ok() },
    {
      request: chat({ message: 'a', more: 'b'.repeat(1_048_576 - 10) }),
      expect: refused(413, 'PAYLOAD_TOO_LARGE', { limit: 1_048_576 }),
    },
  ],
})
