import { exchange, get, matching, refused } from '../../exchange.ts'

const POLICY = matching(/^default-src 'none'; script-src 'self'; .*connect-src 'self'/)

export default exchange({
  rule: 'has a page over /openapi.json at /docs that may speak to its own server alone, with its files and no others below it',
  source: 'issue 4, 6: a page at /docs that works without internet',
  steps: [
    {
      request: get('/docs'),
      expect: {
        status: 200,
        headers: {
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': POLICY,
          'x-content-type-options': 'nosniff',
        },
        text: matching(/<script src="\/docs\/api-reference\.js"/),
      },
    },
    {
      request: get('/docs/start.js'),
      expect: { status: 200, headers: { 'content-type': 'text/javascript; charset=utf-8' }, text: matching(/openapi\.json/) },
    },
    { request: get('/docs/nothing'), expect: refused(404, 'NOT_FOUND') },
    {
      request: { method: 'POST', path: '/docs', body: {} },
      expect: { ...refused(405, 'METHOD_NOT_ALLOWED', { allowed: ['GET', 'HEAD'] }) },
    },
  ],
})
