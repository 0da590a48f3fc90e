import { absent, exact, exchange, field, get, invalid, list, noConversation, ok, post, say, time } from '../../exchange.ts'

const PATH = '/api/v1/conversations'
const patch = (id: string, body: unknown) => ({ method: 'PATCH', path: `${PATH}/${id}`, body })
const named = (id: string, more: object) =>
  exact({
    conversation_id: id,
    created_at: time,
    updated_at: time,
    message_count: 2,
    owner: 'anonymous',
    title: 'Greetings',
    labels: ['a', 'b'],
    provider: 'local',
    model: 'local-1',
    usage: { input_tokens: 20, output_tokens: 3 },
    forked_from: null,
    ...more,
  })
const any = { usage: {} }

export default exchange({
  rule: 'gives a conversation a title and labels, which PATCH changes; detail=full shows them, the documented records do not change',
  source: 'issue 26, 2 (additive to http-api.md)',
  alone: true,
  steps: [
    { request: say({ message: 'hi', title: 'Greetings', labels: ['b', 'a'] }), expect: ok({ title: absent, labels: absent }) },
    {
      request: get(`${PATH}?detail=full&label=a`),
      expect: ([first]) => ok({ conversations: [named(field(first, 'conversation_id'), any)], next_cursor: null }),
    },
    { request: get(`${PATH}?label=c`), expect: ok({ conversations: [], next_cursor: null }) },
    { request: get(PATH), expect: ok({ conversations: list({ title: absent, labels: absent, owner: absent }) }) },
    {
      request: ([first]) => patch(field(first, 'conversation_id'), { title: 'Hello', labels: [] }),
      expect: ([first]) => ok(named(field(first, 'conversation_id'), { ...any, title: 'Hello', labels: [] })),
    },
    { request: ([first]) => patch(field(first, 'conversation_id'), { title: 'a\u0007b' }), expect: invalid('title') },
    { request: ([first]) => patch(field(first, 'conversation_id'), { labels: ['x,y'] }), expect: invalid('labels') },
    { request: ([first]) => patch(field(first, 'conversation_id'), { owner: 'me' }), expect: invalid('owner') },
    { request: patch('c', { title: 'x' }), expect: noConversation('c') },
    {
      request: ([first]) => say({ message: 'hi', conversation_id: field(first, 'conversation_id'), title: 'late' }),
      expect: invalid('title'),
    },
    { request: get(`${PATH}?q=greet*`), expect: ok({ next_cursor: null }) },
    { request: get(`${PATH}?q=x&cursor=foreign`), expect: invalid('cursor') },
    { request: post(`${PATH}/c/hand-over`, { owner: 'ben' }), expect: noConversation('c') },
    {
      request: ([first]) => post(`${PATH}/${field(first, 'conversation_id')}/hand-over`, { owner: 'ben' }),
      expect: ([first]) => ok(named(field(first, 'conversation_id'), { ...any, title: 'Hello', labels: [], owner: 'ben' })),
    },
    {
      request: ([first]) => post(`${PATH}/${field(first, 'conversation_id')}/hand-over`, { owner: 'a\nb' }),
      expect: invalid('owner'),
    },
  ],
})
