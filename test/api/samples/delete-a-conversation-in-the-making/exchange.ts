import { type Answer, beside, exchange, get, noConversation, remove, say, stream } from '../../exchange.ts'

const idOf = ([first]: readonly Answer[]) => String(first!.events[0]?.data.conversation_id)
const PATH = '/api/v1/conversations'

export default exchange({
  rule: 'deletes a conversation whose first turn still runs: that turn fails in the end, and nothing of it appears',
  source: 'http-api.md, conversation lifecycle; decisions.md 1, unknown conversation_id',
  together: 'parts',
  config: { plugins: [beside('../../../support/hold.ts', import.meta.url)] },
  steps: [
    { request: stream({ message: '/tool hold {}\na' }), hold: true },
    { request: told => remove(`${PATH}/${idOf(told)}`), expect: { status: 204 } },
    { request: told => remove(`${PATH}/${idOf(told)}`), expect: told => noConversation(idOf(told)) },
    {
      request: told => say({ message: 'b', conversation_id: idOf(told) }),
      expect: told => noConversation(idOf(told)),
    },
    { request: { method: 'POST', path: '/release' }, expect: { status: 204 } },
    {
      finish: true,
      expect: told => ({
        status: 200,
        events: [
          { event: 'start' },
          { event: 'tool_call' },
          { event: 'tool_result' },
          { event: 'reply' },
          {
            event: 'error',
            data: { error_code: 'INVALID_VALUE', details: { field: 'conversation_id', value: idOf(told), reason: 'not found' } },
          },
          { event: 'end', data: { status: 'failed' } },
        ],
      }),
    },
    { request: told => get(`${PATH}/${idOf(told)}`), expect: told => noConversation(idOf(told)) },
  ],
})
