import { exact, exchange, invalid, post, refused } from '../../exchange.ts'

const answer = (body: object) => post('/api/v1/chat/answer', { request_id: 'r', call_id: 'c', allow: true, ...body })

export default exchange({
  rule: 'answers 404 INVALID_VALUE to an answer to no open question, and 400 to one that says neither yes nor no',
  source: 'an extension of v1: POST /api/v1/chat/answer; decisions.md 1, unknown ids',
  steps: [
    { request: answer({}), expect: refused(404, 'INVALID_VALUE', exact({ field: 'call_id', value: 'c', reason: 'not found' })) },
    { request: answer({ allow: 'yes' }), expect: invalid('allow') },
    { request: answer({ call_id: ' ' }), expect: invalid('call_id') },
    { request: answer({ reason: 'x'.repeat(1001) }), expect: invalid('reason') },
  ],
})
