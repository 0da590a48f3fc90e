import { type CallContext, codeOf, type Log, type SlotView, withTimeout } from '@svc/core'
import { type AuthScheme, type Route, SERVER_HEADERS } from '@svc/core/contracts'
import { type Context, type Middleware, NO_CREDENTIALS, type RequestState } from './context.ts'
import { authenticationFailed, noScheme, schemeFailed, schemeInvalid, schemeSilent, schemeUnready } from './errors.ts'

/** Who holds a credential. */
export type Holder = NonNullable<Awaited<ReturnType<AuthScheme['authenticate']>>>

/** A scheme, its name and whose it is. */
interface Named {
  readonly scheme: AuthScheme
  readonly name: string
  readonly plugin: string | undefined
}

/** Who is asked about requests to the places of one scope. */
export interface Asked {
  /** The schemes that guard these places: the others are asked only about credentials that these do not know. */
  readonly own: readonly Named[]
  readonly common: readonly Named[]
  readonly challenge: string
}

/** The schemes for the places of a scope, found anew when the slot has changed; `undefined` where no credential is asked for. */
export function createAsked(slot: SlotView<AuthScheme>, enabled: boolean, isSound: CredentialHeaders['isSound']) {
  let version = -1
  let known = new Map<Route['scope'], Asked | undefined>()
  return (scope: Route['scope']): Asked | undefined => {
    if (version !== slot.version) known = new Map()
    version = slot.version
    const found = known.get(scope)
    if (found || known.has(scope)) return found
    const asked = askedAbout(
      namedOf(slot).filter(({ scheme }) => isSound(scheme)),
      scope,
      enabled
    )
    known.set(scope, asked)
    return asked
  }
}

const namedOf = (slot: SlotView<AuthScheme>): readonly Named[] =>
  slot.entries().map(([name, scheme]) => ({ scheme, name, plugin: slot.owner(name) }))

function askedAbout(all: readonly Named[], scope: Route['scope'], enabled: boolean): Asked | undefined {
  const own = all.filter(
    ({ scheme: { guards, always } }) => guards !== undefined && guards === scope && (enabled || always === true)
  )
  const common = enabled ? all.filter(({ scheme }) => scheme.guards === undefined) : []
  if (!enabled && own.length === 0) return undefined
  const challenge = [...new Set([...common, ...own].map(({ scheme }) => scheme.challenge))].join(', ') || 'none'
  return { own, common, challenge }
}

/** Asks the schemes about the credentials of a request; each sees the headers that it declares and no others. */
export type Ask = (asked: Asked, state: RequestState, credentials: RequestState['credentials']) => Promise<Holder | undefined>

/** Waits for the schemes no longer than `ms`, whether or not they listen to signal and deadline. */
export const createAsk =
  (headers: Pick<CredentialHeaders, 'forScheme'>, ms: number): Ask =>
  ({ own, common }, state, credentials) => {
    const deadline = Date.now() + ms
    let current: Named | undefined
    const askOne = (one: Named, callContext: CallContext) => {
      current = one
      return one.scheme.authenticate({ headers: headers.forScheme(one.scheme, credentials), address: state.address }, callContext)
    }
    const ask = async (signal: AbortSignal) => {
      const callContext = { ...state.callContext, signal, deadline }
      return (own.length > 0 ? await askAll(own, callContext, askOne) : undefined) ?? askAll(common, callContext, askOne)
    }
    return withTimeout(ms, ask, { signal: state.ending.signal, late: () => schemeSilent(current, ms) })
  }

/** Ids of callers that the server itself makes. */
const RESERVED_IDS = /^(system|anonymous|plugin:.*)$/s
// oxlint-disable-next-line no-control-regex -- it stands in the log and in keys of the store
const CONTROL = /[\u0000-\u001f\u007f]/
const LONGEST_ID = 512

/** What a scheme answers decides what the caller may do: one of another form is a fault of its plugin. Throws SCHEME_INVALID. */
function checkedHolder({ name, plugin }: Named, found: Holder | undefined): Holder | undefined {
  if (found === undefined) return undefined
  const { id, scopes } = Object(found) as { readonly id: unknown; readonly scopes: unknown }
  if (typeof id !== 'string' || id === '' || id.length > LONGEST_ID || CONTROL.test(id) || RESERVED_IDS.test(id))
    throw schemeInvalid(name, plugin, 'answered an id that no caller can have')
  if (!Array.isArray(scopes) || !scopes.every(scope => typeof scope === 'string'))
    throw schemeInvalid(name, plugin, 'answered scopes that are not a list of texts')
  return found
}

/** Every scheme is asked: a credential that one refuses is not made good by another, and two must say the same. */
async function askAll(
  schemes: readonly Named[],
  callContext: CallContext,
  ask: (one: Named, callContext: CallContext) => Promise<Holder | undefined>
): Promise<Holder | undefined> {
  let holder: Holder | undefined
  for (const one of schemes) {
    const found = checkedHolder(one, await ask(one, callContext))
    if (!found) continue
    if (holder && holder.id !== found.id) throw authenticationFailed('two different credentials were given')
    holder ??= found
  }
  return holder
}

/** What a plugin says by a code explains itself; the rest says nothing of where it came from. */
const isKnown = (code: string | undefined): code is string => code !== undefined && code !== 'INTERNAL_ERROR'

/** Asks every scheme whether it can work. Throws AUTHENTICATION_WITHOUT_SCHEME, SCHEME_INVALID, and what a scheme throws. */
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
      throw isKnown(code) ? schemeUnready(code, plugin, error) : schemeFailed(name, plugin, error)
    }
  }
}

/** Headers that carry a credential, whether or not a scheme reads them. */
const ALWAYS = ['authorization', 'cookie', 'proxy-authorization', 'x-api-key', 'x-goog-api-key']

const SERVER_OWNED: ReadonlySet<string> = new Set(SERVER_HEADERS.names)
const HEADER = /^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$/
const MOST_HEADERS = 8
/** Each request is searched for all of them, and none is ever forgotten. */
const MOST_NAMES = 200
const CHALLENGE = /^[A-Za-z][\x20-\x7e]{0,499}$/

/** Keeps the credentials of a request from everything but the schemes that declare their headers. */
export interface CredentialHeaders {
  /** Moves the credentials from the request to `ctx.state.credentials`. Routes, mounts and the log see a request without them. */
  readonly middleware: Middleware
  /** Whether a scheme is fit to be asked. */
  isSound(scheme: AuthScheme): boolean
  /** The headers of a request that this scheme may see. */
  forScheme(scheme: AuthScheme, credentials: RequestState['credentials']): Readonly<Record<string, string>>
  /** The credentials that a loaded scheme reads: nothing where no scheme could know the caller. */
  read(credentials: RequestState['credentials']): readonly (readonly [name: string, value: string])[]
}

/** What a scheme says of itself goes into every answer, and decides what others see of a request. Throws SCHEME_INVALID. */
function checkScheme(scheme: AuthScheme, name: string, plugin: string | undefined): void {
  const invalid = (what: string) => schemeInvalid(name, plugin, what)
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
}

/**
 * A name that was once declared stays a credential for the life of the server: while the process of its scheme restarts, clients still send the header, and
 * no route may see it.
 */
export function createCredentialHeaders(schemes: SlotView<AuthScheme>, log: Pick<Log, 'error'>): CredentialHeaders {
  const names = new Set(ALWAYS)
  const declared = new Map<AuthScheme, ReadonlySet<string>>()
  let readable = new Set<string>()
  let version = -1
  const learn = () => {
    version = schemes.version
    const there = new Set<AuthScheme>()
    readable = new Set()
    for (const [name, scheme] of schemes.entries()) {
      there.add(scheme)
      const headers = declared.get(scheme) ?? headersOf(name, scheme)
      declared.set(scheme, headers)
      for (const header of headers) readable.add(header)
    }
    for (const scheme of declared.keys()) if (!there.has(scheme)) declared.delete(scheme)
  }
  const headersOf = (name: string, scheme: AuthScheme): ReadonlySet<string> => {
    try {
      checkScheme(scheme, name, schemes.owner(name))
      if (names.size + scheme.headers.length > MOST_NAMES)
        throw schemeInvalid(name, schemes.owner(name), `comes too late: ${MOST_NAMES} headers of credentials are known already`)
      for (const header of scheme.headers) names.add(header)
      return new Set(scheme.headers)
    } catch (err) {
      log.error({ err, scheme: name }, 'a credential scheme is not asked')
      return new Set()
    }
  }
  const current = () => {
    if (version !== schemes.version) learn()
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
      const seen = declared.get(scheme)
      const names = Object.keys(credentials)
      if (names.every(name => seen?.has(name))) return { ...credentials }
      return Object.fromEntries(names.filter(name => seen?.has(name)).map(name => [name, credentials[name]!]))
    },
    read(credentials) {
      current()
      return Object.entries(credentials).filter(([name]) => readable.has(name))
    },
  }
}

function takeOff({ req, state }: Context, name: string) {
  const { headers } = req
  // a scheme may declare "constructor", which every object has
  if (!Object.hasOwn(headers, name)) return
  const value = String(headers[name])
  if (state.credentials === NO_CREDENTIALS) state.credentials = {}
  Object.assign(state.credentials, { [name]: value })
  // cookies may come in several headers, other credentials may not: Node joins them by commas
  if (name !== 'cookie' && value.includes(',') && req.headersDistinct[name]!.length > 1) state.doubled = name
  Reflect.deleteProperty(headers, name)
}

/** A mount gets the raw request: its other forms must not have the credentials either. */
function hideRaw({ req }: Context, names: ReadonlySet<string>) {
  const { rawHeaders } = req
  req.headersDistinct = Object.fromEntries(Object.entries(req.headersDistinct).filter(([name]) => !names.has(name)))
  req.rawHeaders = rawHeaders.filter((_, at) => !names.has(rawHeaders[at - (at % 2)]!.toLowerCase()))
}
