import { type Answer, chat, exchange, field, matching, ok, refused, say, stream } from '../../exchange.ts'

export default exchange({
  rule: 'answers 503 UNAVAILABLE with Retry-After when a conversation stays busy for longer than chat.queue_timeout_ms',
  source: 'decisions.md 1, extension codes: UNAVAILABLE',
  together: 'eager',
  config: { chat: { start_after_ms: 0, queue_timeout_ms: 30 } },
  steps: [
    { request: chat({ message: 'one' }), expect: ok() },
    {
      request: ([first]) => stream({ message: '/delay 60000\ntwo', conversation_id: field(first, 'conversation_id') }),
      hold: true,
    },
    ...[chat, stream, say].map(ask => ({
      request: ([first]: readonly Answer[]) => ask({ message: 'three', conversation_id: field(first, 'conversation_id') }),
      expect: {
        ...refused(503, 'UNAVAILABLE', { reason: matching(/busy/) }),
        headers: { 'retry-after': matching(/^[1-9]\d*$/) },
      },
    })),
    { request: chat({ message: 'elsewhere it goes on' }), expect: ok() },
  ],
})
