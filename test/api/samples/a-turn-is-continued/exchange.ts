import { type Answer, exact, exchange, get, ok, post, reply, stream } from '../../exchange.ts'

const turnIn = (answer: Answer | undefined) => String((answer?.events[0]?.data as { turn_id?: string } | undefined)?.turn_id)

export default exchange({
  rule: 'gives the events of a turn again to its owner; a turn that has ended can be cancelled without effect',
  source: 'decisions.md 3, a client that leaves a stream',
  steps: [
    { request: stream({ message: 'one' }), expect: { status: 200 } },
    {
      request: ([first]) => ({ ...get(`/api/v1/chat/stream/${turnIn(first)}`), headers: { 'last-event-id': '0' } }),
      expect: {
        status: 200,
        events: [{ event: 'start' }, reply('You said: one'), { event: 'end', data: { status: 'completed' } }],
      },
    },
    {
      request: ([first]) => post(`/api/v1/chat/stream/${turnIn(first)}/cancel`, undefined),
      expect: ok(exact({ success: true })),
    },
  ],
})
