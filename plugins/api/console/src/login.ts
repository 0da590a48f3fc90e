import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, type SlotView, svcError, systemContext } from '@svc/core'
import { API_SCOPES, type AuthScheme, type Route, type RouteRequest, type Tokens } from '@svc/core/contracts'
import { holderOf, SESSION_PATH, TOKEN_NAME } from './scheme.ts'
import { FRESH_MS, isCode, SESSION_MS, type Sessions } from './session.ts'

interface LoginOptions {
  readonly schemes: SlotView<AuthScheme>
  readonly sessions: Sessions
  readonly tokens: Tokens | undefined
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
  },
} as const

/** The routes that begin and end a session of the console. */
export function createLoginRoutes(options: LoginOptions): Record<string, Route> {
  const { sessions } = options
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
        const { text, expires } = isCode(credential)
          ? await ofCode(credential, options, ctx)
          : await ofCredential(credential, options, ctx)
        const value = await sessions.seal(text, expires)
        return {
          status: 201,
          headers: {
            'set-cookie': cookieOf(sessions.cookie, value, Math.floor((expires - Date.now()) / 1_000), isSecure(request)),
            'cache-control': 'no-store',
          },
          body: { principal: ctx.principal.id, expires: new Date(expires).toISOString() },
        }
      },
    },
    console_logout: {
      method: 'DELETE',
      path: SESSION_PATH,
      summary: 'End the session of the console',
      description: 'The cookie of the request is not accepted any more, even if someone has a copy.',
      scope: 'read',
      uncounted: true,
      query: NO_QUERY,
      responses: { 204: { description: 'The session has ended; the cookie is removed.' } },
      async handle(request, ctx) {
        // the scheme has ended the session: only it sees the cookie. A worker that looked it up just before trusts it a little longer
        await sleep(FRESH_MS, undefined, { signal: ctx.signal })
        return {
          status: 204,
          headers: { 'set-cookie': cookieOf(sessions.cookie, '', 0, isSecure(request)), 'cache-control': 'no-store' },
        }
      },
    },
  }
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
  if (!(await sessions.use(code, ctx))) throw codeUsed()
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

function cookieOf(name: string, value: string, seconds: number, isOverTls: boolean): string {
  return `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${isOverTls ? '; Secure' : ''}`
}

const credentialDiffers = () =>
  svcError('AUTHENTICATION_FAILED', 'the credential in the body is not the one in the Authorization header')
const codeUsed = () => svcError('AUTHENTICATION_FAILED', 'the one-time code is not valid', { hint: 'Run `svc console` again' })
const tokensMissing = () =>
  svcError('UNAVAILABLE', 'the server has no access tokens, which a one-time code becomes', {
    hint: 'Enable @svc/plugin-auth-bearer, or sign in with a key',
  })
const authenticationOff = () =>
  svcError('INVALID_VALUE', 'authentication is off: the console needs no session', {
    details: { field: 'authorization', reason: 'authentication is off' },
  })
const notOwnPage = () =>
  svcError('INVALID_VALUE', 'only a page of this server can begin a session', {
    details: { field: 'sec-fetch-site', reason: 'must be same-origin' },
    hint: 'Open /console over HTTPS or on this machine: browsers name the origin of a request only there',
  })
