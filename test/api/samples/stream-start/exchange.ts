import { any, exact, exchange, reply, stream, time } from '../../exchange.ts'

export default exchange({
  rule: 'begins a stream with start: request, time, conversation, provider and model',
  source: 'http-api.md "Events", start; decisions.md 1, `start` / `end` extras',
  steps: [
    {
      request: { ...stream({ message: 'a' }), headers: { 'x-request-id': 'my-own.request_1' } },
      expect: {
        status: 200,
        headers: { 'x-request-id': 'my-own.request_1' },
        events: [
          {
            event: 'start',
            data: exact({
              type: 'start',
              turn_id: any('text'),
              request_id: 'my-own.request_1',
              timestamp: time,
              conversation_id: any('text'),
              provider: 'local',
              model: 'local-1',
            }),
          },
          reply(any('text')),
          { event: 'end', data: { request_id: 'my-own.request_1' } },
        ],
      },
    },
  ],
})
