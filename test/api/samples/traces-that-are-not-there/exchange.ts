import { exchange, get, invalid, refused } from '../../exchange.ts'

export default exchange({
  rule: 'refuses an unknown trace, and filters and cursors of traces that are not valid',
  source: 'console.md 3, traces',
  steps: [
    {
      request: get(`/api/v1/traces/${'0'.repeat(32)}`),
      expect: refused(404, 'NOT_FOUND', { trace_id: '0'.repeat(32) }),
    },
    { request: get('/api/v1/traces?from=yesterday'), expect: invalid('from') },
    { request: get('/api/v1/traces?min_ms=-1'), expect: invalid('min_ms') },
    { request: get('/api/v1/traces?cursor=bm90aGluZw'), expect: invalid('cursor') },
    { request: get('/api/v1/traces?princpal=x'), expect: invalid('princpal') },
  ],
})
