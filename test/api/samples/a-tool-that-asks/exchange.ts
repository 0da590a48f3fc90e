import { any, type Answer, beside, exact, exchange, matching, ok, post, refused, reply, stream } from '../../exchange.ts'

const message = '/tool launch {}'
const ASKED = {
  event: 'ask',
  data: exact({
    type: 'ask',
    tool: 'launch',
    call_id: any('text'),
    arguments: {},
    question: any('text'),
    expires_at: any('text'),
  }),
}

const idsIn = (held: Answer | undefined) => {
  const data = held?.events.map(event => event.data as Record<string, unknown>) ?? []
  return { request_id: data[0]?.request_id, call_id: data.at(-1)?.call_id }
}
const answer = (held: Answer | undefined, said: object) => post('/api/v1/chat/answer', { ...idsIn(held), ...said })

export default exchange({
  rule: 'asks in an interactive stream whether a tool may run, and goes on with what is answered',
  source: 'an extension of v1: `interactive`, `ask` and POST /api/v1/chat/answer; decisions.md 1, unknown ids',
  together: 'parts',
  config: { plugins: [beside('./plugin.ts', import.meta.url)] },
  steps: [
    { request: stream({ message, interactive: true }), hold: 'ask' },
    { request: ([held]) => answer(held, { allow: true }), expect: ok(exact({ success: true })) },
    {
      finish: true,
      expect: {
        status: 200,
        events: [
          { event: 'start' },
          { event: 'tool_call', data: { tool: 'launch' } },
          ASKED,
          { event: 'tool_result', data: { tool: 'launch', success: true, result: 'launched', error: null } },
          reply(matching(/launched/)),
          { event: 'end', data: { status: 'completed' } },
        ],
      },
    },
    { request: stream({ message, interactive: true }), hold: 'ask' },
    {
      request: answers => answer(answers[3], { allow: false, reason: 'not on a Friday' }),
      expect: ok(exact({ success: true })),
    },
    {
      finish: true,
      expect: {
        status: 200,
        events: [
          { event: 'start' },
          { event: 'tool_call' },
          ASKED,
          { event: 'tool_result', data: { success: false, error: 'Not allowed: not on a Friday' } },
          reply(matching(/not on a Friday/)),
          { event: 'end', data: { status: 'completed' } },
        ],
      },
    },
    {
      request: answers => answer(answers[3], { allow: true }),
      expect: answers =>
        refused(404, 'INVALID_VALUE', exact({ field: 'call_id', value: idsIn(answers[3]).call_id, reason: 'not found' })),
    },
  ],
})
