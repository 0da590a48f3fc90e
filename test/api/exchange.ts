import { fileURLToPath } from 'node:url'
import type { Answer, Request } from '../support/client.ts'
import { absent, any, exact, matching } from '../support/match.ts'

export type { Answer, Request } from '../support/client.ts'
export { absent, any, exact, from, including, list, matching, not, oneOf, time, without } from '../support/match.ts'

/** The raw bytes of a connection, for requests that no HTTP client can send. */
export interface Wire {
  readonly wire: string | Uint8Array
}

/** The expected response. Other members are allowed. A matcher can replace a value. */
export interface Expectation {
  readonly status: unknown
  /** Lower case names. */
  readonly headers?: Readonly<Record<string, unknown>>
  readonly body?: unknown
  /** The body as text. */
  readonly text?: unknown
  /** The frames of an event stream in order; all its tokens in a row are one `reply(…)`. */
  readonly events?: readonly ExpectedEvent[]
}

/** An event by its name and its data; `comment` for a heartbeat. */
export interface ExpectedEvent {
  readonly event: string
  readonly data?: unknown
}

type FromAnswers<T> = T | ((answers: readonly Answer[]) => T)

/** One request and its response. A function receives the responses of the earlier steps. */
export type Step =
  | { readonly request: FromAnswers<Request | Wire>; readonly expect: FromAnswers<Expectation>; readonly hold?: undefined }
  /** Opens a stream and waits for its first event, or the first event of this name. The stream stays open until `finish` or the end of the sample. */
  | { readonly request: FromAnswers<Request>; readonly hold: true | string }
  /** Reads the open stream to its end. */
  | { readonly finish: true; readonly expect: FromAnswers<Expectation> }

/** One rule of the contract. */
export interface Exchange {
  /** The rule in one sentence; the title of the test. */
  readonly rule: string
  /** The document that states the rule. */
  readonly source: string
  readonly steps: readonly Step[]
  /** Starts a server for this sample only. Use it for samples that change server state or need a configuration. */
  readonly alone?: true
  /**
   * Shares a server with all samples of the same group. The server has the merged configuration of the group. After each sample of
   * `switches`, profile, override and mode are reset.
   */
  readonly together?: string
  /** The project configuration of the server. */
  readonly config?: Readonly<Record<string, unknown>>
  /** More arguments of `svc serve`. */
  readonly args?: readonly string[]
  /** The environment of the server. */
  readonly env?: Readonly<Record<string, string>>
  /** Files in the svc home of the server. */
  readonly files?: Readonly<Record<string, string>>
}

/** Declares a sample. */
export const exchange = (sample: Exchange): Exchange => sample

export const chat = (body: unknown): Request => ({ method: 'POST', path: '/api/v1/chat', body })
export const stream = (body: unknown): Request => ({ method: 'POST', path: '/api/v1/chat/stream', body })
export const say = (body: unknown): Request => ({ method: 'POST', path: '/api/v1/conversations', body })
export const post = (path: string, body: unknown): Request => ({ method: 'POST', path, body })
export const get = (path: string): Request => ({ method: 'GET', path })
export const remove = (path: string): Request => ({ method: 'DELETE', path })

/** A field of the JSON body of an answer. */
export const field = (answer: Answer | undefined, name: string): string =>
  String((answer?.body as Record<string, unknown>)?.[name])

/** All tokens in a row, as the text they make. */
export const reply = (text: unknown): ExpectedEvent => ({ event: 'reply', data: { text } })

/** The error record with this status. */
export const refused = (status: number, error_code: string, details: unknown = {}): Expectation => ({
  status,
  headers: { 'content-type': JSON_TYPE },
  body: exactRecord(error_code, details),
})

/** The refusal of a request: below paths with a format of errors, in that format. */
export const refusedAt = ({ path }: Request, status: number, error_code: string, details: unknown = {}): Expectation =>
  path.startsWith('/v1beta')
    ? geminiRefused(status)
    : path.startsWith('/v1/messages')
      ? messagesRefused(status)
      : path.startsWith('/v1/')
        ? endpointRefused(status)
        : refused(status, error_code, details)

/** An error of the endpoints of OpenAI. */
export const endpointRefused = (status: number): Expectation => ({
  status,
  headers: { 'content-type': JSON_TYPE },
  body: exact({ error: { message: any('text'), type: any('text'), code: any('text') } }),
})

const MESSAGES_ERRORS: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
}

/** An error of the Messages API. */
export const messagesRefused = (status: number): Expectation => ({
  status,
  headers: { 'content-type': JSON_TYPE, 'request-id': any('text') },
  body: exact({
    type: 'error',
    error: exact({ type: MESSAGES_ERRORS[status], message: any('text') }),
    request_id: any('text'),
  }),
})

const GEMINI_ERRORS: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
}

/** An error of the Gemini API. */
export const geminiRefused = (status: number): Expectation => ({
  status,
  headers: { 'content-type': JSON_TYPE },
  body: exact({
    error: exact({ code: status, status: GEMINI_ERRORS[status], message: any('text'), details: any('array') }),
  }),
})

const JSON_TYPE = matching(/^application\/json/)
const exactRecord = (error_code: string, details: unknown) => exact({ success: false, error: any('text'), error_code, details })

/** The routes of `@svc/plugin-rest` with a JSON body and a fixed path: a valid body, and its required fields. */
export const BODY_ROUTES: Readonly<
  Record<string, { readonly good: Readonly<Record<string, unknown>>; readonly required: readonly string[] }>
> = {
  '/api/v1/chat': { good: { message: 'hi' }, required: ['message'] },
  '/api/v1/chat/stream': { good: { message: 'hi' }, required: ['message'] },
  '/api/v1/chat/answer': {
    good: { request_id: 'r', call_id: 'c', allow: true },
    required: ['request_id', 'call_id', 'allow'],
  },
  '/api/v1/conversations': { good: { message: 'hi' }, required: ['message'] },
  '/api/v1/profile/switch': { good: { profile: 'default' }, required: ['profile'] },
  '/api/v1/model/switch': { good: { provider: 'local', model: 'local-1' }, required: ['provider', 'model'] },
  '/api/v1/mode/switch': { good: { mode: 'build' }, required: ['mode'] },
}

/** The GET routes of plugins/api/{rest,http,…} that need no parameter and no scope but `read`; `MANAGED_READ` has those of the management API. */
export const READ_ROUTES: readonly string[] = [
  '/api/v1/config/effective',
  '/api/v1/profiles',
  '/api/v1/modes',
  '/api/v1/nodes',
  '/api/v1/conversations',
  '/api/v1/providers',
  '/api/v1/tools',
  '/api/v1/logs',
  '/api/v1/me',
  '/api/v1/status',
  '/api/v1/traces',
  '/api/v1/usage',
  '/api/v1/limits',
  '/api/v1/teams',
  '/api/v1/teams/runs',
  '/api/v1/workflows/questions',
  '/health',
  '/health/live',
  '/health/ready',
  '/metrics',
  '/openapi.json',
]

/** The same step for each route that takes a body. */
export const eachBodyRoute = (make: (path: string, route: (typeof BODY_ROUTES)[string]) => readonly Step[]): readonly Step[] =>
  Object.entries(BODY_ROUTES).flatMap(([path, route]) => make(path, route))

/** A 200 with this body. */
export const ok = (body?: unknown, headers?: Expectation['headers']): Expectation => ({
  status: 200,
  ...(body === undefined ? {} : { body }),
  ...(headers === undefined ? {} : { headers }),
})
/** A 400 that names this field. */
export const invalid = (name: unknown, details: object = {}): Expectation =>
  refused(400, 'INVALID_VALUE', { field: name, reason: any('text'), ...details })
/** A 400 for fields that are not there. */
export const missing = (required_fields: readonly string[], provided_fields: unknown): Expectation =>
  refused(400, 'MISSING_FIELD', exact({ required_fields, provided_fields }))
/** A 404 for a conversation that is not there. */
export const noConversation = (value: string): Expectation =>
  refused(404, 'INVALID_VALUE', exact({ field: 'conversation_id', value, reason: 'not found' }))

/** The bytes of a request by hand. */
export const wire = (lines: readonly string[], body = ''): Wire => ({ wire: `${lines.join('\r\n')}\r\n\r\n${body}` })

/** The path of a module beside a sample: a plugin for its service. */
export const beside = (file: string, sample: string): string => fileURLToPath(new URL(file, sample))

/** Routes without a scope. */
export const OPEN_ROUTES: readonly string[] = ['/api/v1/console/login', '/health', '/health/live', '/health/ready']

/** A body of the Gemini API. */
export const GEMINI_BODY = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] } as const

/** A body of the Messages API. */
export const MESSAGES_BODY = { model: 'local/local-1', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] } as const

const good = (path: string) => post(path, BODY_ROUTES[path]!.good)

/** GET routes of the management API with the scope `read`. */
const MANAGED_READ = [
  '/api/v1/nodes',
  '/api/v1/jobs',
  '/api/v1/jobs/kinds',
  '/api/v1/jobs/j',
  '/api/v1/jobs/j/log',
  '/api/v1/schedules',
  '/api/v1/schedules/s',
  '/api/v1/config',
  '/api/v1/config/schema',
  '/api/v1/config/profiles',
  '/api/v1/store',
  '/api/v1/tokens',
]
/** Changes of the management API. Those without a body have a parameter that they refuse, so that nothing happens. */
const MANAGED_CHANGES = [
  get('/api/v1/secrets'),
  post('/api/v1/jobs', { kind: 'nothing.here' }),
  ...['cancel', 'retry'].map(what => post(`/api/v1/jobs/j/${what}`, undefined)),
  post('/api/v1/schedules', { name: 's', every_ms: 1_000, job: { kind: 'nothing.here' } }),
  ...['pause', 'resume', 'run'].map(what => post(`/api/v1/schedules/s/${what}`, undefined)),
  remove('/api/v1/schedules/s'),
  { method: 'PUT', path: '/api/v1/secrets/s', body: { value: '' } },
  remove('/api/v1/secrets/s'),
  ...['secrets/reseal', 'store/backup', 'reload'].map(path => post(`/api/v1/${path}?zzz=1`, undefined)),
  post('/api/v1/tokens', { scopes: [] }),
  remove('/api/v1/tokens/nothing-here'),
  post('/api/v1/config/check', { values: {} }),
  { method: 'PATCH', path: '/api/v1/config', body: { values: {} } },
  post('/api/v1/profiles/p/check', {}),
  { method: 'PUT', path: '/api/v1/profiles/p', body: {} },
  remove('/api/v1/profiles/p'),
]

/** A request to every route that requires a credential, by its scope. Pages and MCP are in GUARDED_MOUNTS. */
export const GUARDED_ROUTES: Readonly<Record<'chat' | 'read' | 'workflows' | 'tools' | 'admin', readonly Request[]>> = {
  chat: [
    ...['/api/v1/chat', '/api/v1/chat/stream', '/api/v1/chat/answer', '/api/v1/conversations'].map(good),
    get('/api/v1/chat/stream/t'),
    post('/api/v1/chat/stream/t/cancel', undefined),
    get('/api/v1/conversations'),
    get('/api/v1/conversations/c'),
    remove('/api/v1/conversations/c'),
    { method: 'PATCH', path: '/api/v1/conversations/c', body: {} },
    get('/api/v1/conversations/c/export'),
    post('/api/v1/conversations/c/fork', {}),
    post('/api/v1/conversations/import', { content: '' }),
    post('/api/v1/conversations/delete', { label: 'l' }),
    post('/api/v1/evaluations', { cases: [{ name: 'c', message: 'hi' }] }),
    get('/api/v1/evaluations/e'),
    post('/api/v1/evaluations/e/cancel', undefined),
    ...['/v1/messages', '/v1/messages/count_tokens'].map(path => post(path, MESSAGES_BODY)),
    ...['/v1beta', '/v1'].map(version => post(`${version}/models/local/local-1:generateContent`, GEMINI_BODY)),
    get('/v1beta/models'),
    get('/v1beta/models/local/local-1'),
    post('/api/v1/agui/default', { threadId: 't', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'hi' }] }),
    post('/v1/chat/completions', { model: 'local/local-1', messages: [{ role: 'user', content: 'hi' }] }),
    post('/v1/embeddings', { model: 'local/local-1', input: 'hi' }),
    post('/v1/responses', { model: 'local/local-1', input: 'hi', store: false }),
    ...['/v1/models', '/v1/models/m', '/v1/responses/r', '/v1/responses/r/input_items'].map(get),
    remove('/v1/responses/r'),
    post('/v1/responses/r/cancel', undefined),
  ],
  read: READ_ROUTES.filter(path => !OPEN_ROUTES.includes(path) && path !== '/api/v1/conversations')
    // with a position that is not valid, so that the stream does not begin
    .concat(
      '/api/v1/capabilities/recommend?task_type=code',
      '/api/v1/events?after=x',
      '/api/v1/series?metric=requests',
      '/api/v1/traces/t',
      '/api/v1/plugins',
      '/api/v1/plugins/p',
      ...MANAGED_READ
    )
    .concat(
      [
        'mcp/servers',
        'mcp/servers/m',
        'mcp/servers/m/tools',
        'providers/p',
        'teams/t',
        'teams/runs',
        'teams/runs/r',
        'tools/t',
      ].map(path => `/api/v1/${path}`)
    )
    .map(get)
    .concat(
      post('/api/v1/schedules/preview', { every_ms: 1_000 }),
      get('/api/v1/console/pages'),
      get('/api/v1/console/pages/v/view'),
      // refused: it is not from a page of the server
      post('/api/v1/console/session', { credential: 'c' }),
      remove('/api/v1/console/session')
    ),
  workflows: [
    get('/api/v1/workflows'),
    get('/api/v1/workflows/runs'),
    get('/api/v1/workflows/definition?workflow=w'),
    ...['status', 'steps', 'events', 'result'].map(what => get(`/api/v1/workflows/r/${what}`)),
    post('/api/v1/workflows/run', { workflow: 'w' }),
    ...['cancel', 'retry', 'pause', 'resume'].map(what => post(`/api/v1/workflows/r/${what}`, undefined)),
    post('/api/v1/workflows/r/replay', {}),
    ...['dead-letters', 'dead-letters/d'].map(what => get(`/api/v1/workflows/${what}`)),
    post('/api/v1/workflows/dead-letters/d/retry', undefined),
    remove('/api/v1/workflows/dead-letters/d'),
    post('/api/v1/workflows/runs/bulk', { action: 'cancel', workflow: 'w' }),
    post('/api/v1/workflows/r/answer', { step: 's', value: true }),
    post('/api/v1/workflows/r/events', { name: 'e' }),
    ...['r/queries', 'r/queries/q', 'versions?workflow=w'].map(path => get(`/api/v1/workflows/${path}`)),
    ...['source?workflow=w', 'drawing?workflow=w', 'svg?workflow=w', 'nodes', 'schema'].map(what =>
      get(`/api/v1/workflows/${what}`)
    ),
    post('/api/v1/workflows/validate', { text: 'name: w' }),
    post('/api/v1/teams/t/run', { task: 'hi' }),
  ],
  tools: [
    get('/tools'),
    get('/tools/t'),
    post('/tools/t/call', {}),
    get('/api/v1/tools/t/app'),
    post('/api/v1/tools/t/call', {}),
    post('/api/v1/tools/t/answer', { request_id: 'r', question_id: 'q', allow: true }),
  ],
  admin: [
    post('/api/v1/conversations/c/hand-over', { owner: 'o' }),
    ...['/api/v1/profile/switch', '/api/v1/model/switch', '/api/v1/mode/switch'].map(good),
    ...['/api/v1/webhooks', '/api/v1/webhooks/w', '/api/v1/webhooks/w/deliveries', '/api/v1/doctor'].map(get),
    post('/api/v1/webhooks', { url: 'https://hooks.example/' }),
    { method: 'PATCH', path: '/api/v1/webhooks/w', body: {} },
    remove('/api/v1/webhooks/w'),
    ...['test', 'deliveries/d/retry'].map(what => post(`/api/v1/webhooks/w/${what}`, undefined)),
    post('/api/v1/plugins/plans', { action: 'disable', name: 'p' }),
    post('/api/v1/plugins/plans/h/apply', undefined),
    ...MANAGED_CHANGES,
    post('/api/v1/mcp/servers', { name: 'm' }),
    remove('/api/v1/mcp/servers/m'),
    ...['enable', 'disable'].map(what => post(`/api/v1/mcp/servers/m/${what}`, undefined)),
    ...['test', 'login'].map(what => post(`/api/v1/mcp/servers/m/${what}`, {})),
    post('/api/v1/mcp/servers/m/approve', { tools: [{ name: 't', version: 'v' }] }),
    post('/api/v1/mcp/servers/m/login/answer', { login_id: 'l', address: 'http://127.0.0.1/callback' }),
    post('/api/v1/providers/p/test', {}),
    ...['pause', 'resume'].map(what => post(`/api/v1/workflows/${what}`, { workflow: 'w' })),
    { method: 'PUT', path: '/api/v1/workflows/source?workflow=w', body: { text: 'name: w' } },
  ],
}

/** Pages and MCP, which are mounts and not routes. */
export const GUARDED_MOUNTS = { read: [get('/docs')], tools: [post('/mcp', {})] } as const

const templateOf = (path: string) =>
  path
    .replace(/\?.*$/, '')
    .replace('/chat/stream/t', '/chat/stream/{turn_id}')
    .replace('/conversations/c', '/conversations/{id}')
    .replace('/workflows/r/', '/workflows/{id}/')
    .replace('/queries/q', '/queries/{name}')
    .replace('/dead-letters/d', '/dead-letters/{id}')
    .replace('/webhooks/w', '/webhooks/{id}')
    .replace('/evaluations/e', '/evaluations/{id}')
    .replace('/jobs/j', '/jobs/{id}')
    .replace('/schedules/s', '/schedules/{name}')
    .replace('/secrets/s', '/secrets/{name}')
    .replace('/tokens/nothing-here', '/tokens/{id}')
    .replace('/profiles/p', '/profiles/{name}')
    .replace('/deliveries/d', '/deliveries/{delivery}')
    .replace('/tools/t', '/tools/{name}')
    .replace('/pages/v/', '/pages/{name}/')
    .replace(/^(\/v1(?:beta)?)\/models\/local\/.*$/, '$1/models/{name}')
    .replace('/traces/t', '/traces/{id}')
    .replace(/\/plugins\/p$/, '/plugins/{name}')
    .replace('/plans/h', '/plans/{hash}')
    .replace('/agui/default', '/agui/{profile}')
    .replace('/mcp/servers/m', '/mcp/servers/{name}')
    .replace('/providers/p', '/providers/{name}')
    .replace('/teams/t', '/teams/{name}')
    .replace('/teams/runs/r', '/teams/runs/{id}')
    .replace('/models/m', '/models/{id}')
    .replace('/responses/r', '/responses/{id}')

/** The paths of /openapi.json: those above with their scopes, and no others. */
export function describedRoutes(): unknown {
  const paths: Record<string, Record<string, unknown>> = {}
  const add = ({ method, path }: Request, scope: unknown) =>
    void ((paths[templateOf(path)] ??= {})[method.toLowerCase()] = { 'x-scope': scope })
  for (const path of OPEN_ROUTES) add(get(path), absent)
  add(post('/api/v1/console/login', {}), absent)
  for (const [scope, requests] of Object.entries(GUARDED_ROUTES)) for (const request of requests) add(request, scope)
  return exact(Object.fromEntries(Object.entries(paths).map(([path, methods]) => [path, exact(methods)])))
}

/** A profile file for all samples that share a service. */
export const PROFILES = {
  'profiles.yaml': `
default: default
profiles:
  default: {}
  careful: { description: Slow and sure, provider: local, model: local-small, temperature: 0.1, max_tokens: 7, system_prompt: Be careful, mode: review }
  short: { model: local-small, max_tokens: 5, tools: [read_file], system_prompt: Answer in a few words. Be kind. }
  small: { provider: local, model: local-small }
`,
} as const
