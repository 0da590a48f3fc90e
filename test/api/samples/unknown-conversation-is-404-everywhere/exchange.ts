import { chat, exchange, get, noConversation, remove, say, stream } from '../../exchange.ts'

const id = 'conv_00000000000000000000000000000000'

export default exchange({
  rule: "answers an unknown conversation with 404, whether it is posted, read or deleted, and never makes one of a client's id",
  source: 'decisions.md 1, unknown `conversation_id`',
  steps: [
    ...[chat, stream, say].map(ask => ({ request: ask({ message: 'a', conversation_id: id }), expect: noConversation(id) })),
    { request: get(`/api/v1/conversations/${id}`), expect: noConversation(id) },
    { request: remove(`/api/v1/conversations/${id}`), expect: noConversation(id) },
  ],
})
