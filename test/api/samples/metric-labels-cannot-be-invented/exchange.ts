import { chat, exchange, get, matching, without } from '../../exchange.ts'

export default exchange({
  rule: 'labels metrics with method, template of the route and status, and with nothing that a caller can invent',
  source: 'decisions.md 1, figures: metric labels',
  steps: [
    { request: get('/api/v1/conversations/invented-id'), expect: { status: 404 } },
    { request: get('/invented-path?invented=1'), expect: { status: 404 } },
    { request: { method: 'PROPFIND', path: '/invented-path' }, expect: { status: 404 } },
    { request: chat({ message: 'a', model: 'invented-model' }), expect: { status: 404 } },
    { request: get('/metrics'), expect: { status: 200, text: without(/invented|PROPFIND/) } },
    {
      request: get('/metrics'),
      expect: { status: 200, text: matching(/^svc_requests_total\{(?=[^}]*method="GET")(?=[^}]*route="\/api\/v1\/conversations\/:id")(?=[^}]*status="404")/m) },
    },
  ],
})
