import { exchange, get, GUARDED_ROUTES, invalid, matching, ok } from '../../exchange.ts'

const nearest = (name: string) => ({ reason: matching(new RegExp(`did you mean "${name}"`)) })
const closed = Object.values(GUARDED_ROUTES)
  .flat()
  .filter(({ path }) => path.startsWith('/api/v1/') || path.startsWith('/tools'))
const withMore = (path: string) =>
  `${path.replace('recommend?', 'recommend?complexity=low&')}${path.includes('?') ? '&' : '?'}zzz=1`

export default exchange({
  rule: 'refuses query parameters that a route of /api/v1 or /tools does not know, and names the nearest; other paths ignore them',
  source: 'decisions.md 3, unknown query parameters',
  together: 'tool server',
  config: { mcp: { server: { enabled: true } } },
  steps: [
    {
      request: get('/api/v1/conversations?limmit=1'),
      expect: invalid('limmit', { allowed: ['limit', 'cursor', 'q', 'label', 'detail'], ...nearest('limit') }),
    },
    { request: get('/api/v1/tools?categry=files'), expect: invalid('categry', nearest('category')) },
    { request: get('/api/v1/modes?a=1&a=2'), expect: invalid('a', { allowed: [] }) },
    { request: get('/api/v1/modes?__proto__=a'), expect: invalid('__proto__') },
    { request: get(`/api/v1/modes?${'n'.repeat(500)}=a`), expect: invalid('n'.repeat(100)) },
    { request: get('/api/v1/conversations?limit=1&limit=2'), expect: invalid('limit') },
    ...closed.map(request => ({ request: { ...request, path: withMore(request.path) }, expect: invalid('zzz') })),
    ...['/health?a=1', '/metrics?a=1', '/openapi.json?a=1'].map(path => ({ request: get(path), expect: ok() })),
  ],
})
