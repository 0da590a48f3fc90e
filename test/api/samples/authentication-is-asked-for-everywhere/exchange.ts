import { absent, any, BODY_ROUTES, exchange, get, ok, post, READ_ROUTES, refused, remove } from '../../exchange.ts'

const OPEN = ['/health', '/health/live', '/health/ready']
const GUARDED = [
  ...READ_ROUTES.filter(path => !OPEN.includes(path)).map(get),
  ...Object.entries(BODY_ROUTES).map(([path, { good }]) => post(path, good)),
  get('/api/v1/conversations/c'),
  remove('/api/v1/conversations/c'),
  get('/nowhere'),
  post('/health', {}),
]
const told = { ...refused(401, 'AUTHENTICATION_FAILED'), headers: { 'www-authenticate': any('text') } }
const key = (value: string) => ({ headers: { 'x-api-key': value } })

export default exchange({
  rule: 'asks for a credential everywhere but at the three health routes, where a wrong one does not matter either',
  source: 'decisions.md 1, authentication exempt; http-api.md, Authentication 4: 401 AUTHENTICATION_FAILED',
  together: 'auth',
  env: { SVC_API_KEY: 'the-key' },
  config: { server: { auth: { enabled: true } } },
  steps: [
    ...OPEN.flatMap(path => [
      { request: get(path), expect: ok(undefined, { 'www-authenticate': absent }) },
      { request: { ...get(path), ...key('wrong') }, expect: ok() },
    ]),
    ...GUARDED.map(request => ({ request, expect: told })),
    { request: { ...get('/api/v1/status'), ...key('wrong') }, expect: told },
    { request: { ...get('/api/v1/status'), ...key('the-key') }, expect: ok(undefined, { 'www-authenticate': absent }) },
    { request: { ...get('/metrics'), ...key('the-key') }, expect: ok() },
  ],
})
