import { any, exact, exchange, from, reply, stream, time } from '../../exchange.ts'

export default exchange({
  rule: 'ends a stream with end: request, time, status, the provider and model that answered, tokens and duration',
  source: 'http-api.md "Events", end; decisions.md 1, `start` / `end` extras',
  steps: [
    {
      request: stream({ message: 'a' }),
      expect: {
        status: 200,
        events: [
          { event: 'start' },
          reply(any('text')),
          {
            event: 'end',
            data: exact({
              type: 'end',
              request_id: any('text'),
              timestamp: time,
              status: 'completed',
              provider: 'local',
              model: 'local-1',
              tokens_used: exact({ input: from(1), output: from(1), total: from(2) }),
              duration_ms: any('integer'),
            }),
          },
        ],
      },
    },
  ],
})
