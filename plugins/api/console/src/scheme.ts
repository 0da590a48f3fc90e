import { type CallContext, codeOf, svcError, type SlotView } from '@svc/core'
import { type AuthScheme, CREDENTIAL_HEADERS, type CredentialHolder, type CredentialRequest } from '@svc/core/contracts'
import { credentialIn } from '@svc/plugin-kit'
import { isReference } from './oidc-grants.ts'
import { isAnswer, loginUnknown, type OidcLogin } from './oidc-login.ts'
import { isCode, SESSION_MS, type Sessions } from './session.ts'

export const SESSION_PATH = '/api/v1/console/session'
/** The server also accepts a slash at the end of a path. */
const isSession = ({ path }: Pick<CredentialRequest, 'path'>) => path === SESSION_PATH || path === `${SESSION_PATH}/`
/** The name of the scheme. */
export const SCHEME = 'console_session'
/** The holder of tokens that a one-time code creates. */
export const TOKEN_NAME = 'console'

interface SchemeOptions {
  readonly schemes: SlotView<AuthScheme>
  readonly sessions: Sessions
  readonly oidc: OidcLogin | undefined
}

/**
 * The scheme of the cookie. It has no rights of its own: it hands the credential in the cookie to the other schemes at each request, so a revoked token ends its
 * sessions at once. A request with another credential is not its concern.
 */
export function createConsoleScheme({ schemes, sessions, oidc }: SchemeOptions): AuthScheme {
  const ofCode = async (code: string, request: CredentialRequest, ctx: CallContext) => {
    if (request.method !== 'POST' || !isSession(request) || !(await sessions.knows(code, ctx))) throw codeRefused()
    return { id: `token:${TOKEN_NAME}`, scopes: ['read'], expires: Date.now() + SESSION_MS }
  }
  /** The cookie of the begun login binds the answer of the issuer to this browser. */
  const ofAnswer = async (answer: string, request: CredentialRequest, ctx: CallContext) => {
    if (!oidc || request.method !== 'POST' || !isSession(request) || request.isRecheck) throw loginUnknown()
    if (request.fetchSite !== 'same-origin') throw siteRefused()
    const values = valuesOf(request.headers.cookie ?? '', oidc.cookie)
    return oidc.finish(answer, values.length === 1 ? values[0] : undefined, ctx)
  }
  const credentialOf = async (credential: string, ctx: CallContext) =>
    isReference(credential) ? oidc?.token(credential, ctx) : credential
  const ofCookie = async (header: string, request: CredentialRequest, ctx: CallContext) => {
    // no guess, as the cookie is not looked at: a page of another port would lock the operator out with a few images of this server
    if (request.fetchSite !== 'same-origin') throw siteRefused()
    const values = valuesOf(header, sessions.cookie)
    const session = values.length === 1 ? await sessions.open(values[0]!, ctx) : undefined
    const credential = session && (await credentialOf(session.credential, ctx))
    if (credential === undefined) throw sessionOver()
    const holder = await holderOf(schemes, credential, request, ctx)
    if (!holder) throw sessionOver()
    if (request.method === 'DELETE' && isSession(request) && !request.isRecheck) {
      await sessions.end(session!, ctx)
      if (isReference(session!.credential)) await oidc?.remove(session!.credential, ctx)
    }
    return { ...holder, expires: Math.min(holder.expires ?? session!.expires, session!.expires) }
  }
  return {
    headers: ['cookie', ...CREDENTIAL_HEADERS.names],
    cookies: oidc ? [sessions.cookie, oidc.cookie] : [sessions.cookie],
    challenge: 'Cookie realm="svc console"',
    // all schemes are there now: that of the issuer can be added later than this one
    async prepare() {
      if (oidc && !oidc.describe()) throw issuerMissing()
    },
    async authenticate(request, ctx) {
      const given = credentialIn(request.headers)
      if (given !== undefined && isAnswer(given)) return ofAnswer(given, request, ctx)
      if (given !== undefined) return isCode(given) ? ofCode(given, request, ctx) : undefined
      const { cookie } = request.headers
      return cookie === undefined ? undefined : ofCookie(cookie, request, ctx)
    },
    changes: ctx => startWithNull(sessions.endings(ctx)),
  }
}

const issuerMissing = () =>
  svcError('ISSUER_MISSING', 'console.oidc is set, but the server accepts the tokens of no issuer', {
    where: 'console.oidc',
    hint: 'Set server.auth.oidc.issuer and server.auth.oidc.audience, or remove console.oidc',
  })

async function* startWithNull(changes: AsyncIterable<null>): AsyncGenerator<null> {
  const iterator = changes[Symbol.asyncIterator]()
  try {
    for (;;) {
      // `next` before `yield`, so that no change between the two is lost
      const next = iterator.next()
      next.catch(() => {}) // the `await` below reports it
      yield null
      if ((await next).done) return
    }
  } finally {
    await iterator.return?.()
  }
}

/** Asks the other schemes about a key or token, as the server does: one refusal refuses, and all that know it must agree. */
export async function holderOf(
  schemes: SlotView<AuthScheme>,
  credential: string,
  request: Omit<CredentialRequest, 'headers'>,
  ctx: CallContext
): Promise<CredentialHolder | undefined> {
  let holder: CredentialHolder | undefined
  for (const [name, scheme] of schemes.entries()) {
    if (name === SCHEME || scheme.guards !== undefined || !scheme.headers.includes('authorization')) continue
    const answer = await scheme
      .authenticate({ ...request, headers: { authorization: `Bearer ${credential}` } }, ctx)
      .catch(refused)
    if (answer === 'refused') return undefined
    if (answer === undefined || 'needs' in answer) continue
    if (holder && holder.id !== answer.id) return undefined
    holder ??= answer
  }
  return holder
}

function refused(error: unknown): 'refused' {
  if (codeOf(error) === 'AUTHENTICATION_FAILED') return 'refused'
  throw error
}

/** The values of a cookie. Several mean that another page of the host has set one too. */
const valuesOf = (header: string, name: string) =>
  header.split(';').flatMap(pair => {
    const text = pair.trim()
    return text.startsWith(`${name}=`) ? [text.slice(name.length + 1)] : []
  })

const sessionOver = () =>
  svcError('AUTHENTICATION_FAILED', 'the session of the console has ended', { hint: 'Sign in again at /console' })

/** The code of an address that `svc console` has printed. */
export const codeRefused = () =>
  svcError('AUTHENTICATION_FAILED', 'the one-time code was used, or has expired: run `svc console` again', {
    hint: 'Use the address within 30 seconds: its code is valid once',
  })

const siteRefused = () =>
  svcError('FORBIDDEN', 'the cookie of the console is accepted only from its own page', {
    hint: 'Open the console over HTTPS, or in a browser on the machine of the server: only there do browsers send Sec-Fetch-Site',
  })
