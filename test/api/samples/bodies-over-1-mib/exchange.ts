import { chat, eachBodyRoute, exchange, ok, post, refused, stream } from '../../exchange.ts'

const [MIB, CHAT_LIMIT] = [1_048_576, 33_554_432]
const large = { message: 'a'.repeat(2 * MIB), profile: 'a', provider: 'a', model: 'a', mode: 'a' }
const tooLarge = (limit: number) => refused(413, 'PAYLOAD_TOO_LARGE', { limit })
/** Chat takes images and files. */
const WITH_PARTS = ['/api/v1/chat', '/api/v1/chat/stream']

export default exchange({
  rule: 'refuses a body over 1 MiB, and one for a chat over 32 MiB, with the limit',
  source: 'decisions.md 1, sizes: body 1 MiB; PAYLOAD_TOO_LARGE 413; 3, chat with parts',
  steps: [
    ...eachBodyRoute(path => (WITH_PARTS.includes(path) ? [] : [{ request: post(path, large), expect: tooLarge(MIB) }])),
    { request: chat({ message: 'a', more: 'b'.repeat(CHAT_LIMIT - 50) }), expect: ok() },
    { request: chat({ message: 'a', more: 'b'.repeat(CHAT_LIMIT - 10) }), expect: tooLarge(CHAT_LIMIT) },
    { request: stream({ message: 'a', more: 'b'.repeat(CHAT_LIMIT - 10) }), expect: tooLarge(CHAT_LIMIT) },
  ],
})
