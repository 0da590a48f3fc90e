import type { Socket } from 'node:net'
import { asSvcError, type CallContext, type HookCallers, type Host, type Log, type SlotView, type SvcError } from '@svc/core'
import type {
  Allowance,
  AuthScheme,
  Http,
  HttpHooks,
  Limits,
  Listener as PortListener,
  Mount,
  Peers,
  Route,
  Store,
} from '@svc/core/contracts'
import { networkOf } from '@svc/plugin-kit'
import Koa from 'koa'
import type { Next } from 'koa'
import ratelimit from 'koa-ratelimit'
import { createAnswer } from './answer.ts'
import { createAuthentication, createCredentialRevalidation } from './authentication.ts'
import { createBody, validation } from './body.ts'
import { readCertificate } from './certificate.ts'
import { type ConcurrencyLimit, createConcurrencyLimit } from './concurrency-limit.ts'
import type { ServerConfig } from './config.ts'
import type { Context, Life, Middleware, RequestState } from './context.ts'
import { createCors, refuseLentCredentials } from './cors.ts'
import {
  errorCodes,
  explain,
  explainMalformed,
  explainThrown,
  hostForbidden,
  invalidValue,
  methodNotAllowed,
  tooMany,
} from './errors.ts'
import { createGuesses, createSeenGood, type Guesses } from './guesses.ts'
import {
  address,
  begin,
  createJournal,
  createServerMetrics,
  type Journal,
  leaving,
  requestId,
  type ServerMetrics,
  trace,
} from './journal.ts'
import { createAddresses, createListener, createSocket, isLoopback, type Listener } from './listener.ts'
import { answersFirst, createMalformed, createRefusal, isAnswering, type Refusal } from './refusal.ts'
import { createRouting } from './routing.ts'
import { createCredentialHeaders } from './schemes.ts'

/** What the server stands on. */
export interface ServerParts {
  readonly host: Host
  readonly config: ServerConfig
  readonly routes: SlotView<Route>
  readonly mounts: SlotView<Mount>
  readonly schemes: SlotView<AuthScheme>
  readonly listeners: SlotView<PortListener>
  readonly limits: Limits | undefined
  readonly peers: Peers | undefined
  readonly store: Store | undefined
  readonly hooks: HookCallers<HttpHooks>
  readonly log: Log
  /** The circumstances of work that no caller ends. */
  readonly lasting: CallContext
}

/** The server: the service that others see, and its life. */
export interface Server extends Pick<Listener, 'drain'>, Pick<ConcurrencyLimit, 'wanted'>, Pick<Guesses, 'onPeerMessage'> {
  readonly service: Http
  readonly metrics: ServerMetrics
  /** Makes sure that all are ready who are asked for each request, and opens the socket. */
  open(callContext: CallContext): Promise<void>
}

/** Makes the HTTP server; `open` opens its socket. Throws what is wrong with certificate, proxies and origins. */
export async function createServer(parts: ServerParts): Promise<Server> {
  const { config, log } = parts
  const life: Life = { draining: false, ending: false, streams: new Set() }
  const journal = createJournal(log, parts.hooks, parts.lasting)
  const refusal = createRefusal(log)
  const isolated = createIsolated(parts.host)
  const access = createAccess(parts)
  const crowd = createConcurrencyLimit(config, parts.peers, parts.lasting)
  const allowance = createAllowance(parts.limits)
  const common = { ...securityHeaders(config.ssl.enabled), ...access.cors.headers }

  const app = createApp({ ...parts, ...access, life, journal, refusal, crowd, allowance, common, isIsolated: isolated.has })
  const socket = await createSocket(config, log)
  const listener = createListener({ config, life, log, listeners: parts.listeners, server: socket.server })
  attend(listener, app.callback(), createMalformed(journal, common))

  const metrics = createServerMetrics(journal, parts.peers)
  return {
    metrics,
    wanted: crowd.wanted,
    onPeerMessage: access.guesses.onPeerMessage,
    service: {
      address: async () => listener.address(),
      metrics: metrics.read,
      explain: async (error, callContext) => refusal.toReply(error, explain(error, callContext.requestId), callContext.requestId),
      codes: async () => errorCodes,
    },
    async open(callContext) {
      await isolated.learn(callContext)
      await access.authentication.prepare(callContext)
      await allowance.prepare(callContext)
      await listener.listen(callContext)
    },
    async drain(how) {
      await listener.drain(how)
      socket[Symbol.dispose]()
    },
  }
}

/** What the application is made of besides its configuration: parts that the server also uses outside a request. */
interface AppParts extends ServerParts, ReturnType<typeof createAccess> {
  readonly life: Life
  readonly journal: Journal
  readonly refusal: Refusal
  readonly crowd: ConcurrencyLimit
  readonly allowance: AllowanceCheck
  /** Headers of every answer. */
  readonly common: Readonly<Record<string, string>>
  readonly isIsolated: (plugin: string | undefined) => boolean
}

/** The Koa application: its middleware in the order in which every request meets it. */
function createApp(parts: AppParts): Koa<RequestState> {
  const { config, log, life } = parts
  const routing = createRouting(parts)
  const limits = { heartbeatMs: config.heartbeat_ms, stallMs: config.stall_timeout_ms }
  const middleware: readonly Middleware[] = [
    begin(parts.common, life),
    parts.refusal.middleware, // what the others throw becomes the error record
    requestId,
    trace,
    address(parts.addresses),
    routing.find, // without judging: the others need to know
    parts.journal.middleware, // log and metrics: sees also what is refused
    parts.hostGuard.middleware,
    parts.cors.middleware, // and the guard of origins; answers preflights
    leaving(life),
    createFlood(config.max_requests_per_second),
    parts.credentials.middleware, // from here on only schemes see them
    parts.authentication.middleware, // and scopes
    parts.crowd.middleware,
    createCredentialRevalidation(parts), // streams without an end
    parts.allowance.middleware,
    routing.refuseUnknown,
    createBody(config.body_limit),
    validation,
    createAnswer({ life, limits, common: parts.common, log }),
  ]
  const app = new Koa<RequestState>()
  for (const one of middleware) app.use(one)
  app.on('error', (err: { readonly headerSent?: boolean }) => {
    if (err.headerSent) log.debug({ err }, 'a connection broke')
    else log.error({ err }, 'an answer could not be sent')
  })
  return app
}

/** Who may ask: host and origin, and the credentials. */
function createAccess(parts: ServerParts) {
  const { config, schemes, log } = parts
  const { enabled, timeout_ms: timeoutMs } = config.auth
  const hostGuard = createHostGuard(config)
  const addresses = createAddresses(config.trusted_proxies)
  const cors = createCors({ config: config.cors, addresses, isHostChecked: hostGuard.isChecked, isAuthenticated: enabled })
  const credentials = createCredentialHeaders(schemes, log)
  const guesses = createGuesses({ ...parts, headers: credentials, seen: createSeenGood(parts) })
  const authentication = createAuthentication({ enabled, timeoutMs, schemes, headers: credentials, guesses })
  return { hostGuard, addresses, cors, credentials, guesses, authentication }
}

/** Which plugins run in a process of their own. That never changes in a host; one that the host does not name counts as one of them. */
function createIsolated(host: Host) {
  const inProcess = new Set<string>()
  return {
    async learn(callContext: CallContext) {
      for (const { name, isolation } of (await host.report(callContext)).plugins)
        if (isolation === 'in-process') inProcess.add(name)
    },
    has: (plugin: string | undefined) => plugin === undefined || !inProcess.has(plugin),
  }
}

/** Error codes of Node's HTTP parser. Other errors are connection errors (reset, failed TLS handshake), where no answer can arrive. */
const OF_HTTP = /^(HPE|ERR_HTTP)_/

/** Says who takes what comes: requests, what is no request, and those that wish for a tunnel. */
function attend(listener: Listener, handle: ReturnType<Koa['callback']>, malformed: ReturnType<typeof createMalformed>) {
  const { server } = listener
  const serve: typeof handle = (req, res) => listener.running(handle(req, res))
  server.on('request', serve).on('checkExpectation', serve)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || !OF_HTTP.test(error.code ?? '')) socket.destroy()
    else if (!answersFirst(socket as Socket)) malformed(explainMalformed(error.code), socket as Socket)
  })
  // one that has taken all it got waits for an answer in the making
  server.on(
    'timeout',
    (socket: Socket) => void (socket.writableLength === 0 && isAnswering(socket) ? undefined : socket.destroy())
  )
  server.on('connect', (_req, socket) => malformed(explainThrown(methodNotAllowed('CONNECT', []), ''), socket as Socket))
}

/** The documented limits, counted by the provider of `Limits`. */
interface AllowanceCheck {
  /** Asks once, before the server opens, whether anything is limited. */
  prepare(callContext: CallContext): Promise<void>
  /** Throws RATE_LIMITED, UNAVAILABLE. */
  readonly middleware: Middleware
}

function createAllowance(limits: Limits | undefined): AllowanceCheck {
  let active: Limits | undefined
  return {
    async prepare(callContext) {
      active = (await limits?.isActive(callContext)) ? limits : undefined
    },
    middleware(ctx, next) {
      if (!active || ctx.state.route?.route.uncounted) return next()
      return take(active, ctx, next)
    },
  }
}

async function take(limits: Limits, ctx: Context, next: Next) {
  show(ctx, await limits.take(ctx.state.callContext))
  return next()
}

function show(ctx: Context, allowance: Allowance) {
  const { limit, remaining, reset } = allowance.shown ?? allowance
  ctx.set({ 'X-RateLimit-Limit': String(limit), 'X-RateLimit-Remaining': String(remaining), 'X-RateLimit-Reset': String(reset) })
  if (!allowance.allowed) throw tooMany(allowance.limit, allowance.window, allowance.retryAfter)
}

const ADDRESSES = 10_000
const SECOND = 1_000

/**
 * The cheap gate before authentication: koa-ratelimit counts requests a second and network, in this process alone. It stops a flood before the flood costs
 * anything; the documented limits are counted behind authentication, exactly and for all workers. This machine's own addresses pass, and `limit` 0 means no limit.
 */
function createFlood(limit: number): Middleware {
  const isFree = limit === 0 ? () => true : isLoopback
  const options: ratelimit.MiddlewareOptions & { onLimited(): never } = {
    driver: 'memory',
    db: new BoundedMap(ADDRESSES),
    max: limit,
    duration: SECOND,
    disableHeader: true,
    id(ctx) {
      const { address } = ctx.state as RequestState
      return isFree(address) ? false : networkOf(address)
    },
    onLimited() {
      throw tooMany(limit, SECOND / 1_000, SECOND / 1_000) // the rest of a window of one second, rounded up
    },
  }
  return ratelimit(options) as Middleware
}

/** koa-ratelimit never deletes an entry: where room is short, the oldest window gives way. */
class BoundedMap<K, V> extends Map<K, V> {
  readonly #most: number

  constructor(most: number) {
    super()
    this.#most = most
  }

  override set(key: K, value: V): this {
    this.delete(key) // a window that begins anew is the youngest
    if (this.size >= this.#most) this.delete(this.keys().next().value!)
    return super.set(key, value)
  }
}

/** Limit of remembered valid names, so a client cannot fill the memory with spellings. */
const REMEMBERED = 256
const HOST = /^(?:\[([0-9a-f:.]+)\]|([^\s:[\]@/]+))(?::\d{1,5})?$/

/** A request line that names the whole URL, as to a proxy, says itself whom it means; the Host beside it is to be ignored (RFC 9112, 3.2.2). */
const ABSOLUTE = /^https?:\/\/([^/?#]*)/i
const authorityOf = (url: string) => (url.startsWith('/') ? undefined : ABSOLUTE.exec(url)?.[1])

/** Which names the server answers to. */
interface HostGuard {
  /** Each Host is checked; false where the server is open to all names. */
  readonly isChecked: boolean
  /** Refuses what another name was used for: a page whose name was bent to this address. Throws INVALID_VALUE, FORBIDDEN. */
  readonly middleware: Middleware
}

function createHostGuard({ host, allowed_hosts }: Pick<ServerConfig, 'host' | 'allowed_hosts'>): HostGuard {
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
    // HTTP/1.0 allows a request without one, but then nothing says that this server was meant
    if (sent === undefined) throw invalidValue('host', 'is missing')
    const authority = authorityOf(originalUrl)
    const given = authority ?? sent
    // for the guard of origins and for mounts too: what Host says counts no more
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

/**
 * The headers that keep a browser from taking an answer for something else, with the values that helmet documents. An answer is data: a route that sends a page
 * sets the policy that the page needs. Headers that matter to pages only are left out.
 */
const EVERY_ANSWER = {
  'Content-Security-Policy': "default-src 'none';frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
} as const

/** One year. Without `includeSubDomains`: other servers of the same host name may not speak TLS. */
const OVER_TLS = { 'Strict-Transport-Security': 'max-age=31536000' } as const

/** The security headers of every answer. */
const securityHeaders = (isTls: boolean): Readonly<Record<string, string>> =>
  isTls ? { ...EVERY_ANSWER, ...OVER_TLS } : EVERY_ANSWER

/** All that is wrong with what the configuration names, before anything is opened. */
export async function serverProblems({ trusted_proxies, cors, ssl }: ServerConfig): Promise<readonly SvcError[]> {
  const looks = [
    ...trusted_proxies.map(proxy => () => createAddresses([proxy])),
    () => refuseLentCredentials(cors),
    () => (ssl.enabled ? readCertificate(ssl) : undefined),
  ]
  const found = await Promise.all(looks.map(problemOf))
  return found.filter(one => one !== undefined)
}

async function problemOf(look: () => unknown): Promise<SvcError | undefined> {
  try {
    await look()
    return undefined
  } catch (error) {
    return asSvcError(error, 'CONFIG_INVALID')
  }
}
