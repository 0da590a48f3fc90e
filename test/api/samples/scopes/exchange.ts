import { beside, BODY_ROUTES, exact, exchange, get, not, post, refused, remove } from '../../exchange.ts'

/** What each route needs. */
const NEEDS: Readonly<Record<string, readonly ReturnType<typeof post>[]>> = {
  chat: [
    ...['/api/v1/chat', '/api/v1/chat/stream', '/api/v1/chat/answer', '/api/v1/conversations'].map(path =>
      post(path, BODY_ROUTES[path]!.good)
    ),
    get('/api/v1/conversations'),
    get('/api/v1/conversations/c'),
    remove('/api/v1/conversations/c'),
  ],
  read: ['config/effective', 'profiles', 'modes', 'providers', 'tools', 'status']
    .map(path => get(`/api/v1/${path}`))
    .concat(get('/metrics'), get('/openapi.json')),
  workflows: [
    get('/api/v1/workflows'),
    get('/api/v1/workflows/runs'),
    get('/api/v1/workflows/definition?workflow=w'),
    ...['status', 'steps', 'events'].map(what => get(`/api/v1/workflows/r/${what}`)),
    post('/api/v1/workflows/run', { workflow: 'w' }),
    ...['cancel', 'retry'].map(what => post(`/api/v1/workflows/r/${what}`, undefined)),
    post('/api/v1/workflows/r/answer', { step: 's', value: true }),
    post('/api/v1/workflows/r/events', { name: 'e' }),
  ],
  admin: ['profile', 'model', 'mode'].map(what => post(`/api/v1/${what}/switch`, BODY_ROUTES[`/api/v1/${what}/switch`]!.good)),
}
const as = (scope: string, request: ReturnType<typeof post>) => ({ ...request, headers: { 'x-scopes': scope } })

export default exchange({
  rule: 'lets a principal use the routes of its scopes and no others: 403 names the scope that is missing',
  source: 'decisions.md 1, scopes; extension codes: FORBIDDEN 403',
  alone: true,
  config: {
    server: { auth: { enabled: true } },
    plugins: [beside('./plugin.ts', import.meta.url), { use: '@svc/plugin-auth-api-key', enabled: false }],
  },
  steps: Object.entries(NEEDS).flatMap(([scope, requests]) =>
    requests.flatMap(request => [
      ...Object.keys(NEEDS)
        .filter(other => other !== scope)
        .map(other => ({
          request: as(other, request),
          expect: refused(403, 'FORBIDDEN', exact({ scope, reason: 'the scope is missing' })),
        })),
      { request: as(scope, request), expect: { status: not(403) } },
      { request: as('*', request), expect: { status: not(403) } },
    ])
  ),
})
