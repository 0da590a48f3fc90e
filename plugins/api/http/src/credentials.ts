import type { Log, SlotView } from '@svc/core'
import { type AuthScheme, SERVER_HEADERS } from '@svc/core/contracts'
import { type Context, type Middleware, NO_CREDENTIALS, type RequestState } from './context.ts'
import { schemeInvalid } from './errors.ts'

/** Headers that carry a credential, whether or not a scheme reads them. */
const ALWAYS = ['authorization', 'cookie', 'proxy-authorization', 'x-api-key', 'x-goog-api-key']

const RESERVED: ReadonlySet<string> = new Set(SERVER_HEADERS.names)
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
export function checkScheme(scheme: AuthScheme, name: string, plugin: string | undefined): void {
  const invalid = (what: string) => schemeInvalid(name, plugin, what)
  const { headers, challenge } = scheme as { readonly headers?: unknown; readonly challenge?: unknown }
  if (typeof challenge !== 'string' || !CHALLENGE.test(challenge))
    throw invalid('has a "challenge" that a header cannot carry: up to 500 visible characters, like Key realm="svc"')
  if (!Array.isArray(headers) || headers.length === 0 || headers.length > MOST_HEADERS)
    throw invalid(`needs "headers", a list of 1 to ${MOST_HEADERS} names of request headers that it reads`)
  for (const header of headers as unknown[]) {
    if (typeof header !== 'string' || !HEADER.test(header))
      throw invalid(`has ${JSON.stringify(header)} in "headers", which is not the name of a header in lower case`)
    if (RESERVED.has(header)) throw invalid(`has "${header}" in "headers", which belongs to the server`)
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
