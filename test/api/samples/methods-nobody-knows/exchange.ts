import { exchange, refused } from '../../exchange.ts'

export default exchange({
  rule: 'answers odd methods with an error record',
  source: 'issue 3, bad input: unknown routes and methods',
  steps: ['TRACE', 'PROPFIND', 'LOCK', 'PURGE', 'QUERY'].flatMap(method => [
    { request: { method, path: '/api/v1/chat' }, expect: refused(405, 'METHOD_NOT_ALLOWED') },
    { request: { method, path: '/nowhere' }, expect: refused(404, 'NOT_FOUND') },
  ]),
})
