import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, type SlotView, svcError, systemContext } from '@svc/core'
import { API_SCOPES, type AuthScheme, type Route, type RouteRequest, type Tokens } from '@svc/core/contracts'
import { isAnswer, loginUnknown, type OidcLogin } from './oidc-login.ts'
import { codeRefused, holderOf, SESSION_PATH, TOKEN_NAME } from './scheme.ts'
import { FRESH_MS, isCode, SESSION_MS, type Sessions } from './session.ts'

interface LoginOptions {
  readonly schemes: SlotView<AuthScheme>
  readonly sessions: Sessions
  readonly tokens: Tokens | undefined
  readonly oidc: OidcLogin | undefined
  /** For work outside a request. */
  readonly signal: AbortSignal
}

const LONGEST = 4096

const BODY = {
  type: 'object',
  additionalProperties: false,
  required: ['credential'],
  properties: {
    credential: {
      type: 'string',
      minLength: 1,
      maxLength: LONGEST,
      description: 'The key, token or one-time code of the Authorization header.',
    },
  },
} as const

/** Other parameters are refused. */
const NO_QUERY = { type: 'object', properties: {}, additionalProperties: false } as const

const SESSION = {
  title: 'ConsoleSession',
  type: 'object',
  additionalProperties: false,
  required: ['principal', 'expires'],
  properties: {
    principal: { type: 'string' },
    expires: { type: 'string', format: 'date-time', description: 'When the session ends.' },
    place: { type: 'string', description: 'After a login at an issuer: the place of the console where it began.' },
  },
} as const

const LOGOUT = {
  title: 'ConsoleLogout',
  type: 'object',
  additionalProperties: false,
  required: ['end_session_url'],
  properties: { end_session_url: { type: 'string', description: 'Where the issuer ends its own session, with this browser.' } },
} as const

/** The routes that begin and end a session of the console. */
export function createLoginRoutes(options: LoginOptions): Record<string, Route> {
  const { sessions, oidc } = options
  return {
    console_login: {
      method: 'POST',
      path: SESSION_PATH,
      summary: 'Begin a session of the console',
      description:
        'Send the credential in `Authorization: Bearer` too: the server checks it there, and limits guesses. The answer sets a cookie that scripts cannot read. Only a page of this server can begin a session.',
      scope: 'read',
      query: NO_QUERY,
      body: BODY,
      responses: { 201: { description: 'The session; its cookie is set.', schema: SESSION } },
      async handle(request, ctx) {
        const { credential } = request.body as unknown as { readonly credential: string }
        requireOwnPage(request)
        if (ctx.principal.id === 'anonymous') throw authenticationOff()
        const { text, expires, place } = await sessionOf(credential, options, ctx)
        const value = await sessions.seal(text, expires)
        return {
          status: 201,
          headers: {
            'set-cookie': cookieOf(sessions.cookie, value, Math.floor((expires - Date.now()) / 1_000), isSecure(request)),
            'cache-control': 'no-store',
          },
          body: {
            principal: ctx.principal.id,
            expires: new Date(expires).toISOString(),
            ...(place === undefined ? {} : { place }),
          },
        }
      },
    },
    console_logout: {
      method: 'DELETE',
      path: SESSION_PATH,
      summary: 'End the session of the console',
      description:
        'The cookie of the request is not accepted any more, even if someone has a copy. If the session began at an issuer, the answer can say where the issuer ends its own.',
      scope: 'read',
      uncounted: true,
      query: NO_QUERY,
      responses: {
        200: { description: 'The session has ended; that of the issuer is still there.', schema: LOGOUT },
        204: { description: 'The session has ended; the cookie is removed.' },
      },
      async handle(request, ctx) {
        // the scheme has ended the session: only it sees the cookie. A worker that looked it up just before trusts it a little longer
        await sleep(FRESH_MS, undefined, { signal: ctx.signal })
        const url = await oidc?.endSession(ctx.principal.id)
        const headers = { 'set-cookie': cookieOf(sessions.cookie, '', 0, isSecure(request)), 'cache-control': 'no-store' }
        return url === undefined ? { status: 204, headers } : { status: 200, headers, body: { end_session_url: url } }
      },
    },
  }
}

const LOGIN_PATH = '/api/v1/console/login'

const WAYS = {
  title: 'ConsoleLogin',
  type: 'object',
  additionalProperties: false,
  properties: {
    oidc: {
      type: 'object',
      additionalProperties: false,
      required: ['label'],
      properties: { label: { type: 'string', description: 'The name of the issuer.' } },
      description: 'Present if people can sign in at an OpenID Connect issuer.',
    },
  },
} as const

const BEGIN = {
  type: 'object',
  additionalProperties: false,
  properties: {
    place: {
      type: 'string',
      maxLength: 1_000,
      description: 'The place of the console to show after the login: `/console/runs?status=failed`. Default: `/console`.',
    },
  },
} as const

const BEGUN = {
  title: 'ConsoleLoginBegun',
  type: 'object',
  additionalProperties: false,
  required: ['url'],
  properties: { url: { type: 'string', description: 'The address at the issuer to send the browser to.' } },
} as const

/** The routes of logins at an issuer. They are open, because their callers are not signed in yet. */
export function createIssuerRoutes(oidc: OidcLogin | undefined): Record<string, Route> {
  return {
    console_login_ways: {
      method: 'GET',
      path: LOGIN_PATH,
      summary: 'Show how to sign in to the console',
      description: 'Keys and tokens are always accepted.',
      query: NO_QUERY,
      responses: { 200: { description: 'The further ways.', schema: WAYS } },
      async handle() {
        const described = oidc?.describe()
        return { headers: { 'cache-control': 'no-store' }, body: described ? { oidc: described } : {} }
      },
    },
    console_login_begin: {
      method: 'POST',
      path: LOGIN_PATH,
      summary: 'Begin a login at the issuer',
      description:
        'The answer sets a cookie for ten minutes, which is no session. The issuer sends the browser back to `/console/oidc`; that page sends the query of its address, in base64url after `console_oidc.`, as the credential of `POST /api/v1/console/session`. Only a page of this server can begin a login.',
      query: NO_QUERY,
      body: BEGIN,
      responses: { 200: { description: 'The login has begun.', schema: BEGUN } },
      async handle(request) {
        requireOwnPage(request)
        if (!oidc) throw loginUnknown()
        const { place } = (request.body ?? {}) as { readonly place?: string }
        const { url, cookie, seconds } = await oidc.begin({ origin: request.headers.origin, place })
        const set = cookieOf(oidc.cookie, cookie, seconds, isSecure(request), SESSION_PATH)
        return { headers: { 'set-cookie': set, 'cache-control': 'no-store' }, body: { url } }
      },
    },
  }
}

interface NewSession {
  readonly text: string
  readonly expires: number
  readonly place?: string
}

async function sessionOf(credential: string, options: LoginOptions, ctx: CallContext): Promise<NewSession> {
  if (isCode(credential)) return ofCode(credential, options, ctx)
  if (!isAnswer(credential)) return ofCredential(credential, options, ctx)
  if (!options.oidc) throw loginUnknown()
  return options.oidc.take(credential, ctx)
}

/** The credential of the body must be that of the header, which the server has checked: otherwise it could be guessed here. */
async function ofCredential(credential: string, { schemes }: LoginOptions, ctx: CallContext) {
  const request = { method: 'POST', path: SESSION_PATH, query: '', address: ctx.principal.address ?? '' }
  const holder = await holderOf(schemes, credential, request, ctx)
  if (!holder || holder.id !== ctx.principal.id) throw credentialDiffers()
  const latest = Date.now() + SESSION_MS
  return { text: credential, expires: Math.min(holder.expires ?? latest, latest) }
}

/** A one-time code becomes a token, which `svc tokens list` shows and `svc tokens revoke` ends. */
async function ofCode(code: string, { sessions, tokens, signal }: LoginOptions, ctx: CallContext) {
  if (!tokens) throw tokensMissing()
  if (!(await sessions.use(code, ctx))) throw codeRefused()
  const request = { name: TOKEN_NAME, scopes: [...API_SCOPES.names], ttlMs: SESSION_MS }
  const { token, info } = await tokens.create(request, systemContext(signal, 'console'))
  return { text: token, expires: Date.parse(info.expires) }
}

/** Protects from a page that signs its visitor in as someone else. */
function requireOwnPage({ headers }: RouteRequest): void {
  if (headers['sec-fetch-site'] !== 'same-origin') throw notOwnPage()
}

/** Behind a proxy that ends TLS, browsers send the origin of the page. */
const isSecure = ({ headers }: RouteRequest) => headers.origin?.startsWith('https://') === true

function cookieOf(name: string, value: string, seconds: number, isOverTls: boolean, path = '/'): string {
  return `${name}=${value}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=Strict${isOverTls ? '; Secure' : ''}`
}

const credentialDiffers = () =>
  svcError('AUTHENTICATION_FAILED', 'the credential in the body is not the one in the Authorization header')
const tokensMissing = () =>
  svcError('UNAVAILABLE', 'a one-time code becomes an access token, but this server has no access tokens', {
    hint: 'Enable @svc/plugin-auth-bearer, or sign in with a key',
  })
const authenticationOff = () =>
  svcError('INVALID_VALUE', 'authentication is off: the console needs no session', {
    details: { field: 'authorization', reason: 'authentication is off' },
  })
const notOwnPage = () =>
  svcError('INVALID_VALUE', 'only a page of this server can begin a session', {
    details: { field: 'sec-fetch-site', reason: 'must be same-origin' },
    hint: 'Open the console over HTTPS, or in a browser on the machine of the server: only there do browsers send Sec-Fetch-Site',
  })
