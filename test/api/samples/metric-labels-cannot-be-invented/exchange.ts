import { chat, exchange, get, matching, without, wire } from '../../exchange.ts'

export default exchange({
  rule: 'labels metrics with method, template of the route and status, and with nothing that a caller can invent',
  source: 'decisions.md 1, figures: metric labels',
  steps: [
    { request: get('/api/v1/conversations/invented-id'), expect: { status: 404 } },
    { request: get('/invented-path?invented=1'), expect: { status: 404 } },
    { request: wire(['INVENTED /health HTTP/1.1', 'Host: localhost']), expect: { status: 400 } },
    { request: chat({ message: 'a', model: 'invented-model' }), expect: { status: 404 } },
    { request: get('/metrics'), expect: { status: 200, text: without(/invented/i) } },
    {
      request: get('/metrics'),
      expect: {
        status: 200,
        text: matching(
          /^svc_requests_total\{(?=[^}]*method="GET")(?=[^}]*route="\/api\/v1\/conversations\/:id")(?=[^}]*status="404")/m
        ),
      },
    },
  ],
})
