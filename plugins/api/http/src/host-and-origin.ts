import type { CorsConfig, ServerConfig } from './config.ts'
import type { Context, Middleware } from './context.ts'
import { corsCredentials, hostForbidden, invalidValue, originForbidden } from './errors.ts'
import { type Addresses, isLoopback } from './listener.ts'

/** Answer headers that web pages of other origins can read. */
const EXPOSED = [
  'X-Request-Id',
  'ETag',
  'Location',
  'Content-Disposition',
  'Content-Range',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'Retry-After',
  'Retry-After-Ms',
  'X-Should-Retry',
  'X-Ignored-Fields',
  'X-Svc-Dropped',
  'X-Svc-Draining',
  'Request-Id',
  'Allow',
  'WWW-Authenticate',
  'Mcp-Session-Id',
].join(', ')
const LOOPBACK = /^https?:\/\/(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/
/** Limit of cached valid names, so that a client cannot fill the memory with variants. */
const REMEMBERED = 256

export interface Cors {
  /** Checks the Origin, sets the CORS headers and answers preflights. Throws FORBIDDEN. */
  readonly middleware: Middleware
  /** Headers of every answer. */
  readonly headers: Readonly<Record<string, string>>
}

interface CorsOptions {
  readonly config: CorsConfig
  readonly addresses: Addresses
  /** The server checks each Host, so it can trust pages of its own origin. */
  readonly isHostChecked: boolean
  /** Authentication is on, so origins of this machine are not trusted by default. */
  readonly isAuthenticated: boolean
}

/** Throws CORS_INVALID. */
export function createCors({ config, addresses, isHostChecked, isAuthenticated }: CorsOptions): Cors {
  const allows = createOrigins(config, isAuthenticated)
  const all = config.origins?.includes('*') === true
  refuseLentCredentials(config)
  const more = {
    'Access-Control-Expose-Headers': EXPOSED,
    ...(config.credentials ? { 'Access-Control-Allow-Credentials': 'true' } : {}),
  }
  const preflight = {
    'Access-Control-Allow-Methods': config.methods.join(', '),
    'Access-Control-Allow-Headers': config.headers.join(', '),
    'Access-Control-Max-Age': String(config.max_age),
  }
  // a loopback name always leads to this machine, so DNS rebinding cannot use it
  const isOwn = ({ req }: Context, origin: string) =>
    (isHostChecked || LOOPBACK.test(origin)) &&
    origin.toLowerCase() === `${addresses.schemeOf(req)}://${req.headers.host ?? ''}`.toLowerCase()
  const middleware: Middleware = (ctx, next) => {
    const { origin } = ctx.req.headers
    if (origin === undefined) return next()
    if (!allows(origin)) {
      if (isOwn(ctx, origin) || isOfSandbox(ctx, origin)) return next()
      throw originForbidden(origin)
    }
    ctx.set({ 'Access-Control-Allow-Origin': all ? '*' : origin, ...more })
    if (ctx.method !== 'OPTIONS' || ctx.req.headers['access-control-request-method'] === undefined) return next()
    ctx.set(preflight)
    ctx.status = 204
  }
  return { middleware, headers: config.enabled && !all ? { Vary: 'Origin' } : {} }
}

/** A file of a frame that the server itself put into a sandbox. */
const isOfSandbox = ({ method, path, state: { mount } }: Context, origin: string) =>
  origin === 'null' &&
  (method === 'GET' || method === 'HEAD') &&
  mount?.sandboxed !== undefined &&
  path.startsWith(`${mount.sandboxed}/`)

/** Throws CORS_INVALID. */
export function refuseLentCredentials({ origins, credentials }: CorsConfig): void {
  if (credentials && origins?.includes('*')) throw corsCredentials()
}

/**
 * Returns the check for allowed origins: the listed origins. Without a list, the origins of this machine while authentication is off. No origin if CORS is off.
 */
function createOrigins({ enabled, origins }: CorsConfig, isAuthenticated: boolean): (origin: string) => boolean {
  if (!enabled || (isAuthenticated && !origins)) return () => false
  if (origins?.includes('*')) return () => true
  if (origins) {
    const listed = new Set(origins.map(origin => origin.toLowerCase()))
    return origin => listed.has(origin.toLowerCase())
  }
  const good = new Set<string>()
  return origin => {
    if (good.has(origin)) return true
    const fits = LOOPBACK.test(origin)
    if (fits && good.size < REMEMBERED) good.add(origin)
    return fits
  }
}

// --- the Host header ---

const HOST = /^(?:\[([0-9a-f:.]+)\]|([^\s:[\]@/]+))(?::\d{1,5})?$/

/** A request line with an absolute URL, as sent to a proxy. Its host overrides the Host header (RFC 9112, 3.2.2). */
const ABSOLUTE = /^https?:\/\/([^/?#]*)/i
const authorityOf = (url: string) => (url.startsWith('/') ? undefined : ABSOLUTE.exec(url)?.[1])

/** Checks the Host header. */
interface HostGuard {
  /** False if the server accepts every name. */
  readonly isChecked: boolean
  /** Refuses other names, which protects from DNS rebinding. Throws INVALID_VALUE, FORBIDDEN. */
  readonly middleware: Middleware
}

export function createHostGuard({ host, allowed_hosts }: Pick<ServerConfig, 'host' | 'allowed_hosts'>): HostGuard {
  const isChecked = isLoopback(host) || allowed_hosts.length > 0
  const names = new Set([host, ...allowed_hosts].map(name => name.toLowerCase().replace(/^\[(.*)\]$/, '$1')))
  const good = new Set<string>()
  const isOurs = (given: string) => {
    const match = HOST.exec(given)
    const name = (match?.[1] ?? match?.[2] ?? '').replace(/\.$/, '')
    return isLoopback(name) || names.has(name) || names.has(given)
  }
  const check = ({ req, originalUrl }: Context) => {
    const sent = req.headers.host
    // HTTP/1.0 allows a request without Host, but the server cannot check such a request
    if (sent === undefined) throw invalidValue('host', 'is missing')
    const authority = authorityOf(originalUrl)
    const given = authority ?? sent
    // the CORS check and mounts read the Host header too
    if (authority !== undefined) req.headers.host = authority
    if (good.has(given)) return
    if (given.includes(',')) throw invalidValue('host', 'is given more than once')
    if (isChecked && !isOurs(given.toLowerCase())) throw hostForbidden(given)
    if (given === '') throw invalidValue('host', 'is empty')
    if (good.size < REMEMBERED) good.add(given)
  }
  return {
    isChecked,
    middleware(ctx, next) {
      check(ctx)
      return next()
    },
  }
}
