import {
  absent,
  any,
  exchange,
  get,
  GUARDED_MOUNTS,
  GUARDED_ROUTES,
  ok,
  OPEN_ROUTES,
  post,
  refused,
  refusedAt,
} from '../../exchange.ts'

/** The sample `scopes` holds these against /openapi.json. */
const GUARDED = [
  ...Object.values(GUARDED_ROUTES).flat(),
  ...Object.values(GUARDED_MOUNTS).flat(),
  get('/nowhere'),
  post('/health', {}),
]
const challenge = { headers: { 'www-authenticate': any('text') } }
const expected = { ...refused(401, 'AUTHENTICATION_FAILED'), ...challenge }
const key = (value: string) => ({ headers: { 'x-api-key': value } })

export default exchange({
  rule: 'asks for a credential everywhere but at the three health routes, where a wrong one does not matter either',
  source: 'decisions.md 1, authentication exempt; http-api.md, Authentication 4: 401 AUTHENTICATION_FAILED',
  together: 'auth',
  env: { SVC_API_KEY: 'the-key' },
  config: { server: { auth: { enabled: true } } },
  steps: [
    ...OPEN_ROUTES.flatMap(path => [
      { request: get(path), expect: ok(undefined, { 'www-authenticate': absent }) },
      { request: { ...get(path), ...key('wrong') }, expect: ok() },
    ]),
    ...GUARDED.map(request => ({ request, expect: { ...refusedAt(request, 401, 'AUTHENTICATION_FAILED'), ...challenge } })),
    { request: { ...get('/api/v1/status'), ...key('wrong') }, expect: expected },
    { request: { ...get('/api/v1/status'), ...key('the-key') }, expect: ok(undefined, { 'www-authenticate': absent }) },
    { request: { ...get('/metrics'), ...key('the-key') }, expect: ok() },
  ],
})
