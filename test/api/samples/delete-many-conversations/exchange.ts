import { any, exchange, invalid, ok, post, refused, say } from '../../exchange.ts'

const PATH = '/api/v1/conversations'

export default exchange({
  rule: 'deletes the conversations that meet all conditions in a background job',
  source: 'issue 26, 2',
  steps: [
    { request: say({ message: 'one', labels: ['trial'] }), expect: ok() },
    { request: post(`${PATH}/delete`, { label: 'trial' }), expect: { status: 202, body: { job_id: any('text') } } },
    { request: post(`${PATH}/delete`, {}), expect: invalid('filter') },
    { request: post(`${PATH}/delete`, { before: 'yesterday' }), expect: invalid('before') },
    { request: post(`${PATH}/delete`, { label: 7 }), expect: invalid('label') },
    { request: post(`${PATH}/delete`, { all: true }), expect: invalid('all') },
    { request: post(`${PATH}/delete`, { q: ' ' }), expect: refused(400, 'INVALID_VALUE', { field: 'q', reason: any('text') }) },
  ],
})
