import { chat, exchange, invalid, ok, refused, say } from '../../exchange.ts'

export default exchange({
  rule: 'takes the limit of bodies and of messages from the configuration',
  source: 'decisions.md 1, sizes: all configuration keys',
  together: 'sizes',
  config: { server: { body_limit: 16_384 }, rest: { chat_body_limit: 20_000 }, chat: { message_limit: 10 } },
  steps: [
    { request: chat({ message: 'a'.repeat(11) }), expect: invalid('message', { limit: 10 }) },
    { request: chat({ message: 'a', more: 'b'.repeat(20_000) }), expect: refused(413, 'PAYLOAD_TOO_LARGE', { limit: 20_000 }) },
    { request: say({ message: 'a', more: 'b'.repeat(16_384) }), expect: refused(413, 'PAYLOAD_TOO_LARGE', { limit: 16_384 }) },
    { request: chat({ message: 'a' }), expect: ok() },
  ],
})
