import { any, exchange, reply, stream } from '../../exchange.ts'

export default exchange({
  rule: 'sends a stream as text/event-stream that no proxy may cache or buffer',
  source: 'decisions.md 1, SSE form',
  steps: [
    {
      request: stream({ message: 'a' }),
      expect: {
        status: 200,
        headers: {
          'content-type': 'text/event-stream',
          'cache-control': 'no-cache',
          'x-accel-buffering': 'no',
          'x-request-id': any('text'),
        },
        events: [{ event: 'start' }, reply('You said: a'), { event: 'end' }],
      },
    },
  ],
})
