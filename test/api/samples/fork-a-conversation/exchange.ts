import type { Answer } from '../../exchange.ts'
import {
  absent,
  exact,
  exchange,
  field,
  get,
  invalid,
  list,
  noConversation,
  ok,
  post,
  refused,
  say,
  time,
} from '../../exchange.ts'

const PATH = '/api/v1/conversations'
const idOf = (answer: Answer | undefined) => field(answer, 'conversation_id')
const fork = (id: string, body: unknown = {}) => post(`${PATH}/${id}/fork`, body)
const copied = (from: string, message_id: string | null, message_count: number) => ({
  conversation: { message_count, forked_from: { conversation_id: from, message_id } },
})

export default exchange({
  rule: 'forks a conversation at a message into a new one, and answers a changed message there',
  source: 'issue 26, 2',
  steps: [
    { request: say({ message: 'one' }), expect: ok() },
    { request: ([first]) => say({ message: 'two', conversation_id: idOf(first) }), expect: ok() },
    {
      request: ([first]) => get(`${PATH}/${idOf(first)}?detail=full`),
      expect: ok({
        messages: [
          exact({ id: '1-0', role: 'user', at: time, parts: [{ type: 'text', text: 'one' }] }),
          { id: '1-1', role: 'assistant', model: 'local-1' },
          { id: '2-0' },
          { id: '2-1' },
        ],
        next_cursor: null,
      }),
    },
    {
      request: ([first]) => fork(idOf(first)),
      expect: ([first]) => ({ status: 201, body: { ...copied(idOf(first), null, 4), text: absent, response: absent } }),
    },
    {
      request: ([first]) => fork(idOf(first), { message_id: '2-0', message: 'three', title: 'Branch' }),
      expect: ([first]) => ({
        status: 201,
        body: { ...copied(idOf(first), '2-0', 4), text: 'two', response: 'You said: three (turn 2)' },
      }),
    },
    { request: ([first]) => get(`${PATH}/${idOf(first)}`), expect: ok({ messages: list({}, 4) }) },
    {
      request: ([first]) => fork(idOf(first), { message_id: '9-0' }),
      expect: refused(404, 'INVALID_VALUE', { field: 'message_id', value: '9-0', reason: 'not found' }),
    },
    { request: fork('c'), expect: noConversation('c') },
    { request: ([first]) => fork(idOf(first), { message: ' ' }), expect: invalid('message') },
    {
      request: ([first]) => fork(idOf(first), { message: 'x', provider: 'nobody' }),
      expect: refused(503, 'PROVIDER_NOT_FOUND'),
    },
    { request: ([first]) => get(`${PATH}/${idOf(first)}?limit=1`), expect: invalid('limit') },
    { request: ([first]) => get(`${PATH}/${idOf(first)}?detail=full&cursor=x`), expect: invalid('cursor') },
    { request: ([first]) => get(`${PATH}/${idOf(first)}?detail=all`), expect: invalid('detail') },
  ],
})
