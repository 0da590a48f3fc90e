import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { createTogether, type HookCallers, type Host, type Log, type SlotView, type Use } from '@svc/core'
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
import { createAllowance } from './allowance.ts'
import { createAuthentication } from './authentication.ts'
import type { ServerConfig } from './config.ts'
import { createCors } from './cors.ts'
import { createCredentialHeaders } from './credentials.ts'
import { type Crowd, createCrowd } from './crowd.ts'
import { errorCodes, explain, explainMalformed, explainThrown, methodNotAllowed } from './errors.ts'
import { createExchange, type Life } from './exchange.ts'
import { createGates } from './gates.ts'
import { createGuesses, type Guesses } from './guesses.ts'
import { createHostGuard } from './host-guard.ts'
import { createJournal } from './journal.ts'
import { createListener, type Listener } from './listener.ts'
import { answersFirst, createMalformed, createRefusal } from './refusal.ts'
import { createRouteReplies } from './route-replies.ts'
import { createRouting } from './routing.ts'
import { securityHeaders } from './security-headers.ts'
import { createSeenGood } from './seen-good.ts'
import { createServerFigures, type ServerFigures } from './server-figures.ts'
import { createSocket } from './socket.ts'
import { createStanding } from './standing.ts'
import { createWalk } from './walk.ts'

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
export interface Server extends Pick<Listener, 'drain'>, Pick<Crowd, 'wanted'>, Pick<Guesses, 'onPeerMessage'> {
  readonly service: Http
  readonly figures: ServerFigures
  /** Makes sure that all are ready who are asked for each request, and opens the socket. */
  open(use: Use): Promise<void>
}

/** Makes the HTTP server; `open` opens its socket. Throws what is wrong with certificate, proxies and origins. */
export async function createServer(parts: ServerParts): Promise<Server> {
  const { config, log } = parts
  const access = createAccess(parts)
  const crowd = createCrowd(config, parts.peers, parts.lasting)
  const allowance = createAllowance(parts.limits)
  const journal = createJournal(log, parts.hooks, parts.lasting)
  const figures = createServerFigures(journal, parts.peers)
  const refuse = createRefusal(log)
  const isolated = createIsolated(parts.host)
  const routing = createRouting({ ...parts, isIsolated: isolated.has })
  const gates = createGates({ config, routing, journal, ...access, crowd, allowance })
  const limits = { heartbeatMs: config.heartbeat_ms, stallMs: config.stall_timeout_ms }
  const walk = createWalk({ gates, refuse, limits, replies: createRouteReplies(log) })
  const common = [...securityHeaders(config.ssl.enabled), ...access.cors.headers]
  const life: Life = {
    draining: false,
    ending: false,
    stallMs: config.stall_timeout_ms,
    headers: common,
    together: createTogether(),
    streams: new Set(),
  }
  const socket = await createSocket(config, log)
  const listener = createListener({ config, life, log, listeners: parts.listeners, server: socket.server })
  attend(
    listener,
    koaHandler((req, res) => listener.running(walk(createExchange(req, res, life))), log),
    createMalformed(journal, common)
  )
  return {
    figures,
    wanted: crowd.wanted,
    onPeerMessage: access.guesses.onPeerMessage,
    service: {
      address: async () => listener.address(),
      figures: figures.read,
      explain: async (error, use) => refuse.told(error, explain(error, use.requestId), use.requestId),
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

/** Who may ask: host and origin, and the credentials. */
function createAccess(parts: ServerParts) {
  const { config, schemes, log } = parts
  const host = createHostGuard(config)
  const addresses = createAddresses(config.trusted_proxies)
  const cors = createCors({
    config: config.cors,
    addresses,
    isHostChecked: host.isChecked,
    isAuthenticated: config.auth.enabled,
  })
  const headers = createCredentialHeaders(schemes, log)
  const guesses = createGuesses({ ...parts, headers, seen: createSeenGood(parts) })
  const { enabled, timeout_ms: timeoutMs } = config.auth
  const authentication = createAuthentication({ enabled, timeoutMs, schemes, headers, guesses })
  const standing = createStanding({ ...parts, authentication })
  return { host, addresses, cors, credentials: headers.gate, guesses, authentication, standing }
}

/** What Node's HTTP has to say of a connection; other faults are of the connection itself (it broke, no TLS came about), and nobody would hear an answer. */
const OF_HTTP = /^(HPE|ERR_HTTP)_/

/** Says who takes what comes: requests, what is no request, and those that wish for a tunnel. */
function attend(
  { server }: Listener,
  handle: (req: IncomingMessage, res: ServerResponse) => Promise<void>,
  malformed: ReturnType<typeof createMalformed>
) {
  server.on('request', handle).on('checkExpectation', handle)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || !OF_HTTP.test(error.code ?? '')) socket.destroy()
    else if (!answersFirst(socket as Socket)) malformed(explainMalformed(error.code), socket as Socket)
  })
  server.on('connect', (_req, socket) => malformed(explainThrown(methodNotAllowed('CONNECT', []), ''), socket as Socket))
}

/** Koa takes requests and watches their ends; answers are written without its body handling, which would double a request's cost. */
function koaHandler(serve: (req: IncomingMessage, res: ServerResponse) => Promise<void>, log: Log) {
  const app = new Koa()
  app.on('error', (err: unknown) => log.debug({ err }, 'a connection broke'))
  app.use(ctx => serve(ctx.req, ctx.res))
  // Koa's own would watch the end of each answer a second time and look whether there is a body to send.
  Object.assign(app, { handleRequest: (ctx: Koa.Context, walk: (ctx: Koa.Context) => Promise<void>) => walk(ctx) })
  return app.callback()
}
