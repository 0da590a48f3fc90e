import { any, exchange, matching, reply, stream } from '../../exchange.ts'

export default exchange({
  rule: 'writes each event as the lines id, event and data, in this order, with ids that grow',
  source: 'http-api.md "Events"; decisions.md 1, SSE form',
  steps: [
    {
      request: stream({ message: 'a' }),
      expect: {
        status: 200,
        text: matching(/^(id: \d+\nevent: [a-z_]+\ndata: \{"type":"[^\n]*\}\n\n)+$/),
        events: [{ event: 'start' }, reply(any('text')), { event: 'end' }],
      },
    },
  ],
})
