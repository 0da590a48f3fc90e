import { exchange, matching, reply, stream } from '../../exchange.ts'

export default exchange({
  rule: 'sends a comment as heartbeat while a stream is quiet',
  source: 'decisions.md 1, SSE form: a comment heartbeat every 15 s',
  together: 'eager',
  config: { chat: { start_after_ms: 0 }, server: { heartbeat_ms: 10 } },
  steps: [
    {
      request: stream({ message: '/delay 500\na' }),
      expect: {
        status: 200,
        text: matching(/^id: 1\nevent: start\n[^\n]+\n\n(:\n\n)+id: 2\nevent: token/),
        events: [{ event: 'start' }, reply('You said: a'), { event: 'end' }],
      },
    },
  ],
})
