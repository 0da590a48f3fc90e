import { chat, exchange, invalid, ok, refused, say } from '../../exchange.ts'

export default exchange({
  rule: 'takes the limit of bodies and of messages from the configuration',
  source: 'decisions.md 1, sizes: all configuration keys',
  together: 'sizes',
  config: { server: { body_limit: 900 }, rest: { chat_body_limit: 1000 }, chat: { message_limit: 10 } },
  steps: [
    { request: chat({ message: 'a'.repeat(11) }), expect: invalid('message', { limit: 10 }) },
    { request: chat({ message: 'a', more: 'b'.repeat(1000) }), expect: refused(413, 'PAYLOAD_TOO_LARGE', { limit: 1000 }) },
    { request: say({ message: 'a', more: 'b'.repeat(900) }), expect: refused(413, 'PAYLOAD_TOO_LARGE', { limit: 900 }) },
    { request: chat({ message: 'a' }), expect: ok() },
  ],
})
