import { absent, chat, exchange, field, get, noConversation, ok, remove } from '../../exchange.ts'

export default exchange({
  rule: 'deletes a conversation with 204 and an empty body; then it is unknown, also to a second DELETE',
  source: 'http-api.md "Conversations", DELETE; decisions.md 1: a second DELETE is 404',
  steps: [
    { request: chat({ message: 'short life' }), expect: ok() },
    {
      request: ([first]) => remove(`/api/v1/conversations/${field(first, 'conversation_id')}`),
      expect: { status: 204, text: '', headers: { 'content-type': absent, 'content-length': absent } },
    },
    {
      request: ([first]) => remove(`/api/v1/conversations/${field(first, 'conversation_id')}`),
      expect: ([first]) => noConversation(field(first, 'conversation_id')),
    },
    {
      request: ([first]) => get(`/api/v1/conversations/${field(first, 'conversation_id')}`),
      expect: ([first]) => noConversation(field(first, 'conversation_id')),
    },
    {
      request: ([first]) => chat({ message: 'a', conversation_id: field(first, 'conversation_id') }),
      expect: ([first]) => noConversation(field(first, 'conversation_id')),
    },
  ],
})
