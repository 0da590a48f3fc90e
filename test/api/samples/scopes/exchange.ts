import {
  beside,
  describedRoutes,
  exact,
  exchange,
  get,
  GUARDED_MOUNTS,
  GUARDED_ROUTES,
  not,
  ok,
  type post,
  refusedAt,
} from '../../exchange.ts'

/** What each scope lets in. */
const NEEDS = Object.entries({
  ...GUARDED_ROUTES,
  read: [...GUARDED_ROUTES.read, ...GUARDED_MOUNTS.read],
  tools: [...GUARDED_ROUTES.tools, ...GUARDED_MOUNTS.tools],
})
/** `admin` also reads: each GET route, and the pages. */
const reads = (request: ReturnType<typeof post>, scope: string) => request.method === 'GET' || scope === 'read'
const as = (scope: string, request: ReturnType<typeof post>) => ({ ...request, headers: { 'x-scopes': scope } })

export default exchange({
  rule: 'limits a principal to the routes, pages and MCP requests of its scopes, and `admin` can also read everything; 403 names the missing scope',
  source: 'decisions.md 1, scopes; extension codes: FORBIDDEN 403',
  alone: true,
  config: {
    server: { auth: { enabled: true } },
    mcp: { server: { enabled: true } },
    plugins: [beside('./plugin.ts', import.meta.url), { use: '@svc/plugin-auth-api-key', enabled: false }],
  },
  steps: [
    { request: as('read', get('/openapi.json')), expect: ok({ paths: describedRoutes() }) },
    ...NEEDS.flatMap(([scope, requests]) =>
      requests.flatMap(request => [
        ...NEEDS.map(([other]) => other)
          .filter(other => other !== scope)
          .map(other => ({
            request: as(other, request),
            expect:
              other === 'admin' && reads(request, scope)
                ? { status: not(403) }
                : refusedAt(request, 403, 'FORBIDDEN', exact({ scope, reason: 'the scope is missing' })),
          })),
        { request: as(scope, request), expect: { status: not(403) } },
        { request: as('*', request), expect: { status: not(403) } },
      ])
    ),
  ],
})
