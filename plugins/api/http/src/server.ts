import type { Socket } from 'node:net'
import type { HookCallers, Host, Log, SlotView, Use } from '@svc/core'
import type {
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
import Koa from 'koa'
import { createAddresses } from './address.ts'
import { type AllowanceCheck, createAllowance } from './allowance.ts'
import { createAnswer } from './answer.ts'
import { createAuthentication } from './authentication.ts'
import { createBody } from './body.ts'
import type { ServerConfig } from './config.ts'
import type { Life, Middleware, RequestState } from './context.ts'
import { createCors } from './cors.ts'
import { createCredentialHeaders } from './credentials.ts'
import { type ConcurrencyLimit, createConcurrencyLimit } from './concurrency-limit.ts'
import { errorCodes, explain, explainMalformed, explainThrown, methodNotAllowed } from './errors.ts'
import { createFlood } from './flood.ts'
import { createGuesses, type Guesses } from './guesses.ts'
import { createHostGuard } from './host-guard.ts'
import { createJournal, createServerFigures, type Journal, type ServerFigures } from './journal.ts'
import { createListener, type Listener } from './listener.ts'
import { answersFirst, createMalformed, createRefusal, isAnswering, type Refusal } from './refusal.ts'
import { address, begin, leaving, requestId, trace } from './request.ts'
import { createRouting } from './routing.ts'
import { securityHeaders } from './security-headers.ts'
import { createSeenGood } from './seen-good.ts'
import { createSocket } from './socket.ts'
import { createCredentialRevalidation } from './credential-revalidation.ts'
import { validation } from './validation.ts'

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
  readonly lasting: Use
}

/** The server: the service that others see, and its life. */
export interface Server extends Pick<Listener, 'drain'>, Pick<ConcurrencyLimit, 'wanted'>, Pick<Guesses, 'onPeerMessage'> {
  readonly service: Http
  readonly figures: ServerFigures
  /** Makes sure that all are ready who are asked for each request, and opens the socket. */
  open(use: Use): Promise<void>
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

  const figures = createServerFigures(journal, parts.peers)
  return {
    figures,
    wanted: crowd.wanted,
    onPeerMessage: access.guesses.onPeerMessage,
    service: {
      address: async () => listener.address(),
      figures: figures.read,
      explain: async (error, use) => refusal.told(error, explain(error, use.requestId), use.requestId),
      codes: async () => errorCodes,
    },
    async open(use) {
      await isolated.learn(use)
      await access.authentication.prepare(use)
      await allowance.prepare(use)
      await listener.listen(use)
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
    async learn(use: Use) {
      for (const { name, isolation } of (await host.report(use)).plugins) if (isolation === 'in-process') inProcess.add(name)
    },
    has: (plugin: string | undefined) => plugin === undefined || !inProcess.has(plugin),
  }
}

/** What Node's HTTP has to say of a connection; other faults are of the connection itself (it broke, no TLS came about), and nobody would hear an answer. */
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
