import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type Duplex, duplexPair } from 'node:stream'
import {
  asSvcError,
  type CallContext,
  type CheckContext,
  type HookCallers,
  hasRole,
  type Host,
  type HostReport,
  type Log,
  type Principal,
  type SlotView,
  type SvcError,
  type StartSpan,
} from '@svc/core'
import type {
  Counts,
  AuthScheme,
  ErrorFormat,
  Http,
  HttpHooks,
  Limits,
  Listener as PortListener,
  Mount,
  OperatorAnswers,
  OperatorRequest,
  Peers,
  Route,
  Store,
} from '@svc/core/contracts'
import { createActiveItems } from '@svc/plugin-kit'
import Koa from 'koa'
import { createAnswer } from './answer.ts'
import { createAuthentication, createCredentialRevalidation } from './authentication.ts'
import { createDigestBody } from './body-digest.ts'
import { createBody, createBodyMemory } from './body.ts'
import { readCertificate } from './certificate.ts'
import type { ServerConfig } from './config.ts'
import type { Life, Middleware, RequestState } from './context.ts'
import { createErrorFormatting } from './error-formats.ts'
import { errorCodes, explain, explainMalformed, explainThrown, methodNotAllowed, roleMissing } from './errors.ts'
import { createGuesses, createSeenGood, type Guesses } from './guesses.ts'
import { createCors, createHostGuard, refuseLentCredentials } from './host-and-origin.ts'
import {
  address,
  begin,
  createJournal,
  createServerMetrics,
  type RequestJournal,
  leaving,
  requestId,
  type RequestMetrics,
  receivedSpan,
  startSpan,
  trace,
} from './journal.ts'
import { type ConcurrencyLimit, createAllowance, createConcurrencyLimit, createFlood } from './limits.ts'
import { createAddresses, createListener, createPlainSocket, createSocket, type HttpListener } from './listener.ts'
import { answersFirst, createMalformed, createRefusal, isAnswering, type Refusal } from './refusal.ts'
import { createRouting, validation } from './routing.ts'
import { createCredentialHeaders } from './schemes.ts'

/** The services, slots and configuration that the server uses. */
interface ServerDependencies {
  readonly host: Host
  readonly config: ServerConfig
  readonly routes: SlotView<Route>
  readonly mounts: SlotView<Mount>
  readonly schemes: SlotView<AuthScheme>
  readonly formats: SlotView<ErrorFormat>
  readonly listeners: SlotView<PortListener>
  readonly limits: Limits | undefined
  readonly peers: Peers | undefined
  readonly store: Store | undefined
  readonly counts: Counts | undefined
  readonly hooks: HookCallers<HttpHooks>
  readonly span: StartSpan
  readonly log: Log
  /** The context for work outside a request. */
  readonly lasting: CallContext
}

/** The server: the service `Http`, and the functions that open and stop it. */
export interface HttpServer
  extends Pick<HttpListener, 'drain'>,
    Pick<ConcurrencyLimit, 'wanted'>,
    Pick<Guesses, 'onPeerMessage'> {
  readonly service: Http
  readonly metrics: RequestMetrics
  /** Prepares authentication and limits, then opens the socket. */
  open(callContext: CallContext): Promise<void>
}

/** Without Redis, the servers of a cluster go on: it can cost limits, and never service. Each worker then counts on its own. */
const hasBusInRedis = ({ plugins }: HostReport): boolean =>
  plugins.some(({ provides, requires }) => provides === 'node_bus' && requires.includes('redis'))

/** Creates the HTTP server; `open` opens its socket. Throws if the certificate, the trusted proxies or the CORS settings are invalid. */
export async function createServer(parts: ServerDependencies): Promise<HttpServer> {
  const { config, log } = parts
  const life: Life = { draining: false, ending: false, streams: createActiveItems() }
  const journal = createJournal(log, parts.hooks, parts.lasting)
  const isolated = createIsolated(parts.host)
  const formatting = createErrorFormatting({ ...parts, isIsolated: isolated.has })
  const refusal = createRefusal(log, formatting)
  const operator = createOperatorRequests()
  const access = createAccess(parts, operator)
  const report = await parts.host.report(parts.lasting)
  const isCluster = report.clusterId !== report.serverId && !hasBusInRedis(report)
  const concurrency = createConcurrencyLimit(config, parts.peers, isCluster, parts.lasting)
  const allowance = createAllowance(parts.limits)
  const common = { ...securityHeaders(config.ssl.enabled), ...access.cors.headers }

  const roleGuard = createRoleGuard(hasRole(report, 'http'))
  const own = { life, journal, refusal, concurrency, allowance, common, roleGuard }
  const app = createApp({ ...parts, ...access, ...own, isIsolated: isolated.has })
  const socket = await createSocket(parts)
  const listener = createListener({ config, life, log, listeners: parts.listeners, server: socket.server })
  const handle = app.callback()
  attend(listener, handle, createMalformed({ journal, formatting, common }))
  operator.attach(createPlainSocket(config).on('request', (req, res) => listener.running(handle(req, res))))

  const metrics = createServerMetrics(journal, parts.peers)
  return {
    metrics,
    wanted: concurrency.wanted,
    onPeerMessage: access.guesses.onPeerMessage,
    service: {
      address: async () => listener.address(),
      metrics: metrics.read,
      explain: async (error, callContext) => refusal.toReply(error, explain(error, callContext.requestId), callContext.requestId),
      codes: async () => errorCodes,
    },
    async open(callContext) {
      await isolated.learn(callContext)
      formatting.update()
      await access.authentication.prepare(callContext)
      const isLimited = await allowance.prepare(callContext)
      await listener.listen({ isLimited }, callContext)
      for (const [, shared] of parts.listeners.entries()) await shared.serveOperator?.(operator.answer, callContext)
    },
    async drain(how) {
      await listener.drain(how)
      socket[Symbol.dispose]()
    },
  }
}

/** Parts of the application that the server also uses outside a request. */
interface AppOptions extends ServerDependencies, ReturnType<typeof createAccess> {
  readonly life: Life
  readonly journal: RequestJournal
  readonly refusal: Refusal
  readonly concurrency: ConcurrencyLimit
  readonly allowance: ReturnType<typeof createAllowance>
  /** Headers of every answer. */
  readonly common: Readonly<Record<string, string>>
  readonly isIsolated: (plugin: string | undefined) => boolean
  readonly roleGuard: Middleware
}

/** The paths of a server without the role `http`. */
const PROBED: ReadonlySet<string> = new Set(['/health', '/health/live', '/health/ready', '/metrics'])

/** Refuses what a server without the role `http` does not serve. The operator of its machine uses the API over the control socket. */
const createRoleGuard =
  (isServing: boolean): Middleware =>
  (ctx, next) => {
    if (isServing || ctx.state.isOperator || PROBED.has(ctx.path)) return next()
    throw roleMissing()
  }

/** The Koa application: its middleware in the order in which every request meets it. */
function createApp(parts: AppOptions): Koa<RequestState> {
  const { config, log, life } = parts
  const routing = createRouting(parts)
  const limits = { heartbeatMs: config.heartbeat_ms, stallMs: config.stall_timeout_ms }
  const middleware: readonly Middleware[] = [
    begin(parts.common, life),
    parts.refusal.middleware, // turns errors of later middleware into the error record
    requestId,
    trace,
    address(parts.addresses),
    routing.find, // refuses nothing yet, because the log needs the route of refused requests too
    parts.journal.middleware, // log and metrics, for refused requests too
    parts.hostGuard.middleware,
    parts.cors.middleware, // checks the Origin and answers preflights
    leaving(life),
    createFlood(config.max_requests_per_second),
    routing.redirectBrowser, // before the login: the page has its own
    parts.credentials.middleware, // hides credentials from everything except schemes
    parts.authentication.middleware, // checks the scope too
    parts.roleGuard,
    parts.concurrency.middleware,
    createCredentialRevalidation(parts), // for endless streams
    parts.allowance.middleware,
    routing.refuseUnknown,
    startSpan(parts.span),
    createBody(config.body_limit, createBodyMemory(config.body_memory)),
    validation,
    receivedSpan(parts.span),
    createAnswer({ life, limits, common: parts.common, log }),
  ]
  const app = new Koa<RequestState>()
  for (const layer of middleware) app.use(layer)
  app.on('error', (err: { readonly headerSent?: boolean }) => {
    if (err.headerSent) log.debug({ err }, 'a connection broke')
    else log.error({ err }, 'failed to send an answer')
  })
  return app
}

/** Creates the access checks: Host, Origin and credentials. */
function createAccess(parts: ServerDependencies, { principalOf }: OperatorRequests) {
  const { config, schemes, log } = parts
  const { enabled, timeout_ms: timeoutMs } = config.auth
  const hostGuard = createHostGuard(config)
  const addresses = createAddresses(config.trusted_proxies)
  const cors = createCors({ config: config.cors, addresses, isHostChecked: hostGuard.isChecked, isAuthenticated: enabled })
  const credentials = createCredentialHeaders(schemes, log)
  const guesses = createGuesses({ ...parts, headers: credentials, seen: createSeenGood(parts) })
  const digestBody = createDigestBody(config.body_limit)
  const checks = { enabled, timeoutMs, schemes, headers: credentials, digestBody, guesses }
  const authentication = createAuthentication({ ...checks, operatorOf: principalOf })
  return { hostGuard, addresses, cors, credentials, guesses, authentication }
}

/** Knows which plugins run in their own process. This never changes in a running host. An unknown plugin counts as isolated. */
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

/** Error codes of Node's HTTP parser. Other errors are connection errors (reset, failed TLS handshake), after which no answer arrives. */
const OF_HTTP = /^(HPE|ERR_HTTP)_/

/** Attaches the handlers for requests, malformed requests, timeouts and CONNECT. */
function attend(listener: HttpListener, handle: ReturnType<Koa['callback']>, malformed: ReturnType<typeof createMalformed>) {
  const { server } = listener
  const serve: typeof handle = (req, res) => listener.running(handle(req, res))
  server.on('request', serve).on('checkExpectation', serve)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || !OF_HTTP.test(error.code ?? '')) socket.destroy()
    else if (!answersFirst(socket as Socket)) void malformed(explainMalformed(error.code), socket as Socket)
  })
  // a client that has read everything waits for an answer that is not ready yet, so its connection stays open
  server.on(
    'timeout',
    (socket: Socket) => void (socket.writableLength === 0 && isAnswering(socket) ? undefined : socket.destroy())
  )
  server.on('connect', (_req, socket) => void malformed(explainThrown(methodNotAllowed('CONNECT', []), ''), socket as Socket))
}

/**
 * Security headers with the values that helmet documents. Answers are data, so headers that only matter to web pages are missing. A route that sends a page sets
 * its own policy.
 */
const EVERY_ANSWER = {
  'Content-Security-Policy': "default-src 'none';frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
} as const

/** One year. Without `includeSubDomains`, because servers on subdomains possibly do not use TLS. */
const OVER_TLS = { 'Strict-Transport-Security': 'max-age=31536000' } as const

/** The security headers of every answer. */
const securityHeaders = (isTls: boolean): Readonly<Record<string, string>> =>
  isTls ? { ...EVERY_ANSWER, ...OVER_TLS } : EVERY_ANSWER

/**
 * Returns all problems of the configured proxies, origins and certificate files. Opens nothing. While the server runs, `createServer` reads the certificate: it can
 * use the last valid one.
 */
export async function serverProblems(
  { trusted_proxies, cors, ssl }: ServerConfig,
  _instance?: string,
  { running }: CheckContext = { running: false }
): Promise<readonly SvcError[]> {
  const checks = [
    ...trusted_proxies.map(proxy => () => createAddresses([proxy])),
    () => refuseLentCredentials(cors),
    () => (ssl.enabled && !running ? readCertificate(ssl) : undefined),
  ]
  const problems = await Promise.all(checks.map(problemOf))
  return problems.filter(problem => problem !== undefined)
}

async function problemOf(check: () => unknown): Promise<SvcError | undefined> {
  try {
    await check()
    return undefined
  } catch (error) {
    return asSvcError(error, 'CONFIG_INVALID')
  }
}

// --- requests of the operator ---

/** Serves requests of the operator of this machine, which arrive over the control socket of the supervisor, not over the port. */
interface OperatorRequests {
  readonly answer: OperatorAnswers
  /** The principal of such a request. */
  readonly principalOf: (req: IncomingMessage) => Principal | undefined
}

type NodeServer = Pick<HttpListener['server'], 'emit'>

const nodeHttp = process.getBuiltinModule('node:http')
const HTTP_JSON = 'application/json'

/**
 * Each request is an HTTP message on a connection in memory, so it passes through the same middleware as all others. Only this
 * function creates such connections: a client of the port cannot claim to be the operator, whatever it sends. `server` is a plain
 * server of its own, because that of the port can demand TLS.
 */
function createOperatorRequests(): OperatorRequests & { attach(server: NodeServer): void } {
  const principals = new WeakMap<Duplex, Principal>()
  let server: NodeServer | undefined
  return {
    attach: given => void (server = given),
    principalOf: ({ socket }) => principals.get(socket),
    async *answer(request, { signal, principal }) {
      const [near, far] = duplexPair()
      principals.set(far, principal)
      // the parts of a network connection that the server uses; the command's own signal ends a stalled one
      server!.emit('connection', Object.assign(far, { remoteAddress: '127.0.0.1', setTimeout: () => far }))
      try {
        const [answer] = (await once(send(request, near, signal), 'response', { signal })) as [IncomingMessage]
        yield { status: answer.statusCode ?? 0, headers: textHeaders(answer) }
        answer.setEncoding('utf8')
        for await (const text of answer) yield String(text)
      } finally {
        near.destroy()
        far.destroy()
      }
    },
  }
}

function send({ method, path, accept, body }: OperatorRequest, connection: Duplex, signal: AbortSignal): ClientRequest {
  const headers = {
    host: 'localhost',
    connection: 'close',
    ...(accept === undefined ? {} : { accept }),
    ...(body === undefined ? {} : { 'content-type': HTTP_JSON, 'content-length': Buffer.byteLength(body) }),
  }
  const request = nodeHttp.request({ method, path, headers, signal, createConnection: () => connection })
  return request.end(body)
}

const textHeaders = ({ headers }: IncomingMessage): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])))
