import { type CallContext, codeOf, type Log, type SlotView, withTimeout } from '@svc/core'
import {
  type AuthScheme,
  type BodyDigestAlgorithm,
  CREDENTIAL_HEADERS,
  type CredentialHolder,
  type CredentialRequest,
  type Route,
  SERVER_HEADERS,
} from '@svc/core/contracts'
import { type DigestBody, DIGESTS } from './body-digest.ts'
import { type Context, type Middleware, NO_CREDENTIALS, type RequestState } from './context.ts'
import { authenticationFailed, noScheme, schemeFailed, schemeInvalid, schemeSilent, schemeUnready } from './errors.ts'

/** The caller that a scheme returns for a credential. */
export interface VerifiedHolder extends CredentialHolder {
  /** The name of the scheme. */
  readonly scheme: string
}

/** A scheme with its name and its plugin. */
interface Named {
  readonly scheme: AuthScheme
  readonly name: string
  readonly plugin: string | undefined
}

/** The schemes for requests to routes and mounts of one scope. */
export interface ScopeSchemes {
  /** Schemes that guard this scope. The common schemes are asked only if these do not recognize the credential. */
  readonly own: readonly Named[]
  readonly common: readonly Named[]
  readonly challenge: string
}

/** Returns a lookup of the schemes for a scope, cached until the slot changes; `undefined` if the scope needs no credential. */
export function createScopeSchemes(slot: SlotView<AuthScheme>, enabled: boolean, isSound: CredentialHeaders['isSound']) {
  let version = -1
  let cache = new Map<Route['scope'], ScopeSchemes | undefined>()
  return (scope: Route['scope']): ScopeSchemes | undefined => {
    if (version !== slot.version) cache = new Map()
    version = slot.version
    const cached = cache.get(scope)
    if (cached || cache.has(scope)) return cached
    const schemes = schemesFor(
      namedOf(slot).filter(({ scheme }) => isSound(scheme)),
      scope,
      enabled
    )
    cache.set(scope, schemes)
    return schemes
  }
}

const namedOf = (slot: SlotView<AuthScheme>): readonly Named[] =>
  slot.entries().map(([name, scheme]) => ({ scheme, name, plugin: slot.owner(name) }))

function schemesFor(all: readonly Named[], scope: Route['scope'], enabled: boolean): ScopeSchemes | undefined {
  const own = all.filter(
    ({ scheme: { guards, always } }) => guards !== undefined && guards === scope && (enabled || always === true)
  )
  const common = enabled ? all.filter(({ scheme }) => scheme.guards === undefined) : []
  if (!enabled && own.length === 0) return undefined
  const challenge = [...new Set([...common, ...own].map(({ scheme }) => scheme.challenge))].join(', ') || 'none'
  return { own, common, challenge }
}

/** Asks the schemes about the credentials of a request. Each scheme sees only the headers that it declares. */
type AskSchemes = (
  schemes: ScopeSchemes,
  ctx: Context,
  credentials: RequestState['credentials']
) => Promise<VerifiedHolder | undefined>

interface AskOptions {
  readonly headers: Pick<CredentialHeaders, 'forScheme'>
  readonly digestBody: DigestBody
  /** Milliseconds that all schemes together have for a request, without the time in which its body arrives. */
  readonly ms: number
  /** The request was accepted before. */
  readonly isRecheck?: boolean
}

/** Creates an `AskSchemes` that fails in time, even if a scheme ignores signal and deadline. */
export const createAsk =
  ({ headers, digestBody, ms, isRecheck = false }: AskOptions): AskSchemes =>
  async ({ own, common }, ctx, credentials) => {
    const { state } = ctx
    let left = ms
    const call = async (named: Named, request: CredentialRequest) => {
      const began = performance.now()
      const limit = Math.max(1, left)
      const work = async (signal: AbortSignal) =>
        named.scheme.authenticate(request, { ...state.callContext, signal, deadline: Date.now() + limit })
      try {
        return await withTimeout(limit, work, { signal: state.ending.signal, late: () => schemeSilent(named, ms) })
      } finally {
        left -= performance.now() - began
      }
    }
    const askOne = async (named: Named): Promise<unknown> => {
      const visible = headers.forScheme(named.scheme, credentials)
      if (Object.keys(visible).length === 0) return undefined
      const site = ctx.req.headers['sec-fetch-site']
      const request = {
        ...targetOf(ctx),
        headers: visible,
        address: state.address,
        ...(typeof site === 'string' ? { fetchSite: site } : {}),
        ...(isRecheck ? { isRecheck } : {}),
      }
      const answer = await call(named, request)
      const algorithm = demandIn(named, answer)
      return algorithm ? call(named, { ...request, bodyDigest: await digestBody(ctx, algorithm) }) : answer
    }
    return (own.length > 0 ? await askAll(own, askOne) : undefined) ?? askAll(common, askOne)
  }

/** Method, path and query as the client sent them. A request line with an absolute URL has scheme and host before the path. */
function targetOf({ req: { method = '', url = '' } }: Context): Pick<CredentialRequest, 'method' | 'path' | 'query'> {
  const target = url.replace(/^https?:\/\/[^/?#]*/i, '')
  const at = target.indexOf('?')
  const path = at < 0 ? target : target.slice(0, at)
  return { method, path: path || '/', query: at < 0 ? '' : target.slice(at + 1) }
}

/** The algorithm of a scheme that asks for the digest of the body. Throws SCHEME_INVALID for an unknown one. */
function demandIn({ name, plugin }: Named, answer: unknown): BodyDigestAlgorithm | undefined {
  const { needs } = Object(answer) as { readonly needs?: unknown }
  if (needs === undefined) return undefined
  if (!DIGESTS.includes(needs))
    throw schemeInvalid(name, plugin, 'asked for a digest of the body that is not sha256, sha384 or sha512')
  return needs as BodyDigestAlgorithm
}

/** Ids that the server itself assigns to callers. */
const RESERVED_IDS = /^(system|anonymous|plugin:.*)$/s
// oxlint-disable-next-line no-control-regex -- ids appear in the log and in keys of the store
const CONTROL = /[\u0000-\u001f\u007f]/
const LONGEST_ID = 512

/** Checks the form of a scheme's answer, because it decides what the caller can do. Throws SCHEME_INVALID. */
function checkedHolder({ name, plugin }: Named, answer: unknown): VerifiedHolder | undefined {
  if (answer === undefined) return undefined
  const { id, scopes } = Object(answer) as { readonly id: unknown; readonly scopes: unknown }
  if (typeof id !== 'string' || id === '' || id.length > LONGEST_ID || CONTROL.test(id) || RESERVED_IDS.test(id))
    throw schemeInvalid(name, plugin, 'returned an id that is empty, too long or reserved')
  if (!Array.isArray(scopes) || !scopes.every(scope => typeof scope === 'string'))
    throw schemeInvalid(name, plugin, 'returned scopes that are not a list of strings')
  const { expires } = answer as CredentialHolder
  return { id, scopes, scheme: name, ...(typeof expires === 'number' && { expires }) }
}

/** Asks every scheme: one refusal refuses the request, and all schemes that know the caller must return the same id. */
async function askAll(schemes: readonly Named[], ask: (named: Named) => Promise<unknown>): Promise<VerifiedHolder | undefined> {
  let holder: VerifiedHolder | undefined
  for (const named of schemes) {
    const next = checkedHolder(named, await ask(named))
    if (!next) continue
    if (holder && holder.id !== next.id) throw authenticationFailed('the request has two credentials of different callers')
    holder ??= next
  }
  return holder
}

/** An error with its own code explains itself; any other error needs the name of its plugin. */
const isKnown = (code: string | undefined): code is string => code !== undefined && code !== 'INTERNAL_ERROR'

/** Calls `prepare` of every scheme. Throws AUTHENTICATION_WITHOUT_SCHEME, SCHEME_INVALID, SCHEME_FAILED and errors of schemes. */
export async function prepareAll(schemes: SlotView<AuthScheme>, enabled: boolean, callContext: CallContext): Promise<void> {
  const all = namedOf(schemes)
  if (enabled && all.every(({ scheme }) => scheme.guards !== undefined)) throw noScheme()
  for (const { scheme, name, plugin } of all) {
    if (!enabled && scheme.always !== true) continue
    checkScheme(scheme, name, plugin)
    try {
      await scheme.prepare?.(callContext)
    } catch (error) {
      const code = codeOf(error)
      throw isKnown(code) ? schemeUnready(code, name, plugin, error) : schemeFailed(name, plugin, error)
    }
  }
}

/** Headers that always count as credentials, even if no scheme reads them. */
export const CREDENTIAL_NAMES: readonly string[] = [...CREDENTIAL_HEADERS.names, 'cookie', 'proxy-authorization']

const SERVER_OWNED: ReadonlySet<string> = new Set(SERVER_HEADERS.names)
const HEADER = /^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$/
const MOST_HEADERS = 8
/** Limit of credential headers: the server searches each request for all of them and never removes one. */
const MOST_NAMES = 200
const COOKIE = /^[A-Za-z0-9_-]{1,100}$/
const CHALLENGE = /^[A-Za-z][\x20-\x7e]{0,499}$/

/** Hides the credentials of a request from everything except the schemes that declare their headers. */
export interface CredentialHeaders {
  /** Moves the credentials from the request to `ctx.state.credentials`. Routes, mounts and the log see a request without them. */
  readonly middleware: Middleware
  /** Whether the declaration of a scheme is valid. */
  isSound(scheme: AuthScheme): boolean
  /** The credential headers that this scheme declares. */
  forScheme(scheme: AuthScheme, credentials: RequestState['credentials']): Readonly<Record<string, string>>
  /** The credentials that at least one loaded scheme reads. */
  read(credentials: RequestState['credentials']): readonly (readonly [name: string, value: string])[]
}

/** Checks the declaration of a scheme: its challenge goes into answers, its headers are removed from requests. Throws SCHEME_INVALID. */
function checkScheme(scheme: AuthScheme, name: string, plugin: string | undefined): void {
  const invalid = (problem: string) => schemeInvalid(name, plugin, problem)
  const { headers, challenge } = scheme as { readonly headers?: unknown; readonly challenge?: unknown }
  if (typeof challenge !== 'string' || !CHALLENGE.test(challenge))
    throw invalid('has a "challenge" that a header cannot carry: up to 500 visible characters, like Key realm="svc"')
  if (!Array.isArray(headers) || headers.length === 0 || headers.length > MOST_HEADERS)
    throw invalid(`needs "headers", a list of 1 to ${MOST_HEADERS} names of request headers that it reads`)
  for (const header of headers as unknown[]) {
    if (typeof header !== 'string' || !HEADER.test(header))
      throw invalid(`has ${JSON.stringify(header)} in "headers", which is not the name of a header in lower case`)
    if (SERVER_OWNED.has(header)) throw invalid(`has "${header}" in "headers", which belongs to the server`)
  }
  const { cookies } = scheme as { readonly cookies?: unknown }
  if (
    cookies !== undefined &&
    !(Array.isArray(cookies) && cookies.every(cookie => typeof cookie === 'string' && COOKIE.test(cookie)))
  )
    throw invalid('has "cookies" that is not a list of names of letters, digits, "_" and "-"')
}

/** The cookies with these names, as sent. Without names, all of them. */
function cookiesIn(header: string, names: readonly string[] | undefined): string | undefined {
  if (names === undefined) return header
  const all = header.split(';').map(pair => pair.trim())
  const chosen = all.filter(pair => names.includes(pair.slice(0, Math.max(0, pair.indexOf('=')))))
  return chosen.length === 0 ? undefined : chosen.join('; ')
}

/** The same credentials with only these cookies. */
function withCookies(credentials: Readonly<Record<string, string>>, names: readonly string[] | undefined) {
  if (names === undefined || credentials.cookie === undefined) return credentials
  const { cookie, ...others } = credentials
  const chosen = cookiesIn(cookie, names)
  return chosen === undefined ? others : { ...others, cookie: chosen }
}

/**
 * Collects the headers that schemes declare. A declared header stays a credential until the server ends: while the process of its scheme restarts, clients still
 * send the header, and routes must not see it.
 */
export function createCredentialHeaders(schemes: SlotView<AuthScheme>, log: Pick<Log, 'error'>): CredentialHeaders {
  const names = new Set(CREDENTIAL_NAMES)
  const declared = new Map<AuthScheme, ReadonlySet<string>>()
  let readable = new Set<string>()
  /** The cookies that schemes read; `undefined`: one reads all. */
  let cookies: readonly string[] | undefined = []
  let version = -1
  const update = () => {
    version = schemes.version
    const loaded = new Set<AuthScheme>()
    readable = new Set()
    cookies = []
    for (const [name, scheme] of schemes.entries()) {
      loaded.add(scheme)
      const headers = declared.get(scheme) ?? headersOf(name, scheme)
      declared.set(scheme, headers)
      for (const header of headers) readable.add(header)
      if (headers.has('cookie')) cookies = scheme.cookies && cookies && [...cookies, ...scheme.cookies]
    }
    for (const scheme of declared.keys()) if (!loaded.has(scheme)) declared.delete(scheme)
  }
  const headersOf = (name: string, scheme: AuthScheme): ReadonlySet<string> => {
    try {
      checkScheme(scheme, name, schemes.owner(name))
      if (names.size + scheme.headers.length > MOST_NAMES)
        throw schemeInvalid(
          name,
          schemes.owner(name),
          `declares too many headers: the server has ${MOST_NAMES} credential headers already`
        )
      for (const header of scheme.headers) names.add(header)
      return new Set(scheme.headers)
    } catch (err) {
      log.error({ err, scheme: name }, 'ignored an invalid credential scheme')
      return new Set()
    }
  }
  const current = () => {
    if (version !== schemes.version) update()
  }
  return {
    middleware(ctx, next) {
      current()
      for (const name of names) takeOff(ctx, name)
      if (ctx.state.mount && ctx.state.credentials !== NO_CREDENTIALS) hideRaw(ctx, names)
      return next()
    },
    isSound(scheme) {
      current()
      return (declared.get(scheme)?.size ?? 0) > 0
    },
    forScheme(scheme, credentials) {
      current()
      return visibleTo(scheme, declared.get(scheme), credentials)
    },
    read(credentials) {
      current()
      return Object.entries(withCookies(credentials, cookies)).filter(([name]) => readable.has(name))
    },
  }
}

/** The credentials that a scheme declares. */
function visibleTo(scheme: AuthScheme, headers: ReadonlySet<string> | undefined, credentials: RequestState['credentials']) {
  const names = Object.keys(credentials)
  if (names.every(name => headers?.has(name))) return { ...withCookies(credentials, scheme.cookies) }
  const shown = Object.fromEntries(names.filter(name => headers?.has(name)).map(name => [name, credentials[name]!]))
  return withCookies(shown, scheme.cookies)
}

function takeOff({ req, state }: Context, name: string) {
  const { headers } = req
  // a scheme can declare "constructor", which every object inherits
  if (!Object.hasOwn(headers, name)) return
  const value = String(headers[name])
  if (state.credentials === NO_CREDENTIALS) state.credentials = {}
  Object.assign(state.credentials, { [name]: value })
  // Node joins repeated headers with commas; only cookies are allowed to repeat
  if (name !== 'cookie' && value.includes(',') && req.headersDistinct[name]!.length > 1) state.repeatedHeader = name
  Reflect.deleteProperty(headers, name)
}

/** Removes the credentials from the raw headers, which a mount can read. */
function hideRaw({ req }: Context, names: ReadonlySet<string>) {
  const { rawHeaders } = req
  req.headersDistinct = Object.fromEntries(Object.entries(req.headersDistinct).filter(([name]) => !names.has(name)))
  req.rawHeaders = rawHeaders.filter((_, at) => !names.has(rawHeaders[at - (at % 2)]!.toLowerCase()))
}
