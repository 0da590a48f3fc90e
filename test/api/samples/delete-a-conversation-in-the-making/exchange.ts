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
    { request: answers => remove(`${PATH}/${idOf(answers)}`), expect: { status: 204 } },
    { request: answers => remove(`${PATH}/${idOf(answers)}`), expect: answers => noConversation(idOf(answers)) },
    {
      request: answers => say({ message: 'b', conversation_id: idOf(answers) }),
      expect: answers => noConversation(idOf(answers)),
    },
    { request: { method: 'POST', path: '/release' }, expect: { status: 204 } },
    {
      finish: true,
      expect: answers => ({
        status: 200,
        events: [
          { event: 'start' },
          { event: 'tool_call' },
          { event: 'tool_result' },
          { event: 'reply' },
          {
            event: 'error',
            data: {
              error_code: 'INVALID_VALUE',
              details: { field: 'conversation_id', value: idOf(answers), reason: 'not found' },
            },
          },
          { event: 'end', data: { status: 'failed' } },
        ],
      }),
    },
    { request: answers => get(`${PATH}/${idOf(answers)}`), expect: answers => noConversation(idOf(answers)) },
  ],
})
