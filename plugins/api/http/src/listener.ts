import { once } from 'node:events'
import type { IncomingMessage, Server as PlainServer } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import { BlockList, createServer, isIP, isIPv6, type Socket } from 'node:net'
import { type CallContext, codeOf, type Log, type SlotView, withTimeout } from '@svc/core'
import type { Http, ListenAddress, Listener as PortListener } from '@svc/core/contracts'
import { type Certificate, type CertificateKeeper, createKeeper, firstCertificate, watchCertificate } from './certificate.ts'
import type { ServerConfig } from './config.ts'
import type { Life } from './context.ts'
import { listenFailed, portTaken, proxyInvalid, stopping } from './errors.ts'
import { createLogThrottle } from './log-throttle.ts'

type NodeServer = ServerSocket['server']

/** Options of a shutdown. `successor`: another process accepts the new connections. */
interface DrainHow {
  readonly successor: boolean
  readonly limitMs?: number
}

/** Accepts connections and closes them when the server stops. */
export interface HttpListener {
  readonly server: NodeServer
  address(): Awaited<ReturnType<Http['address']>>
  /** Opens the port, and warns of missing guards. Throws PORT_TAKEN, LISTEN_FAILED. */
  listen(guards: { readonly isLimited: boolean }, callContext: CallContext): Promise<void>
  /** Stops accepting connections, waits up to `limitMs` (default `server.shutdown_timeout`) for running requests, then closes the rest. */
  drain(how: DrainHow): Promise<void>
  /** Registers a running request, which `drain` waits for. */
  running(work: Promise<void>): Promise<void>
}

interface ListenerOptions {
  readonly server: NodeServer
  readonly config: ServerConfig
  readonly life: Life
  readonly log: Log
  /** The first entry opens the port instead of this process, for example the supervisor. */
  readonly listeners: SlotView<PortListener>
}

/** Time for handlers to clean up after their connection was closed: a chat turn stores its partial reply. */
const TIDY_MS = 3_000
/** Time for a stream to send its last event when the server stops. */
const PARTING_MS = 1_000

export function createListener({ server, config, life, log, listeners }: ListenerOptions): HttpListener {
  const { host } = config
  const scheme = config.ssl.enabled ? 'https' : 'http'
  const works = createWorks()
  const connections = createConnections(server, config, log)
  let port: OpenPort | undefined
  return {
    server,
    running: work => works.add(work),
    address: () => port && { host, port: port.number, url: `${scheme}://${urlHost(host)}:${port.number}` },
    async listen({ isLimited }, callContext) {
      const [shared] = listeners.entries().map(([, listener]) => listener)
      port = await openPort({ host, port: config.port, scheme }, connections.take, shared, callContext)
      // http.Server starts its timeout checks on this event, which it does not emit itself when another server owns the port
      server.emit('listening')
      for (const warning of warningsOf(config, isLimited)) log.warn({ host }, warning)
      // a supervisor has its port before and after this process, and its workers log its start
      log[shared ? 'debug' : 'info']({ host, port: port.number, scheme }, 'listening')
    },
    async drain({ successor, limitMs = config.shutdown_timeout * 1000 }) {
      life.draining = true
      life.ending ||= !successor
      port?.close()
      port = undefined
      await endConnections({ server, connections, life, log }, limitMs, successor)
      await works.settled(TIDY_MS)
    },
  }
}

/** A port at which this server listens. */
interface OpenPort {
  readonly number: number
  close(): void
}

/** Opens a port in this process, or through `shared`. `close` does nothing for `shared`, which notices by itself that this process stops. */
async function openPort(
  address: ListenAddress,
  take: (socket: Socket) => void,
  shared: PortListener | undefined,
  callContext: CallContext
): Promise<OpenPort> {
  const { host, port } = address
  try {
    if (shared) return { number: await shared.listen(address, take, callContext), close() {} }
    const acceptor = createServer({ noDelay: true }, take)
    await once(acceptor.listen({ host, port }), 'listening')
    const bound = acceptor.address()
    return { number: typeof bound === 'object' && bound ? bound.port : port, close: () => void acceptor.close() }
  } catch (error) {
    throw codeOf(error) === 'EADDRINUSE' ? portTaken(host, port, error) : listenFailed(host, port, error)
  }
}

/** The open connections of this server, at most `max_connections`. */
interface Connections {
  readonly take: (socket: Socket) => void
  /** Resolves when no connection is open. */
  ended(): Promise<void>
  cut(): void
}

function createConnections(server: NodeServer, { max_connections: max, ssl }: ServerConfig, log: Log): Connections {
  const open = new Set<Socket>()
  const due = createLogThrottle()
  let last = Promise.withResolvers<void>()
  const refuse = (socket: Socket) => {
    socket.destroy()
    const left_out = due('drop')
    if (left_out !== undefined)
      log.warn({ max_connections: max, left_out }, 'closed a connection: server.max_connections is reached')
  }
  return {
    take(socket) {
      if (open.size >= max) return refuse(socket)
      if (open.size === 0) last = Promise.withResolvers()
      open.add(socket)
      socket.once('close', () => {
        open.delete(socket)
        if (open.size === 0) last.resolve()
      })
      socket.allowHalfOpen = !ssl.enabled // the setting that http.Server and https.Server use for connections that they accept
      server.emit('connection', socket)
    },
    ended: async () => void (open.size > 0 && (await last.promise)),
    cut() {
      for (const socket of open) socket.destroy()
    },
  }
}

const HINT = 'set server.auth.enabled to true, or set server.host to 127.0.0.1'

const LIMITS_HINT = 'set server.rate_limit.enabled to true, or limit requests at a proxy'

const TLS_OFF =
  'server.ssl has a certificate or a key, but TLS is off: others on the network can read all traffic, including keys and tokens; set server.ssl.enabled to true'

function warningsOf({ host, auth, cors, ssl }: ServerConfig, isLimited: boolean): string[] {
  const always = [
    ...(!ssl.enabled && (ssl.cert !== undefined || ssl.key !== undefined) ? [TLS_OFF] : []),
    ...(!isLimited && !isLoopback(host)
      ? [`rate limits are off, so no limit per minute or day applies to clients that reach ${host}: ${LIMITS_HINT}`]
      : []),
  ]
  if (auth.enabled) return always
  return [
    ...always,
    ...(!isLoopback(host) ? [`authentication is off, so every client that reaches ${host} can use this server: ${HINT}`] : []),
    ...(cors.enabled && cors.origins?.includes('*')
      ? [
          'authentication is off and server.cors.origins is *, so every web page opened on this machine can use this server: list origins in server.cors.origins, or set server.auth.enabled to true',
        ]
      : []),
  ]
}

function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

interface Ending extends Pick<ListenerOptions, 'server' | 'life' | 'log'> {
  readonly connections: Connections
}

/**
 * Waits for the connections to close. With a successor, idle connections stay open until their keep-alive timeout, because a client can be sending a request on
 * them. `close` of http.Server cuts idle connections, so it comes last. Without a successor, idle connections are closed at once.
 */
async function endConnections({ server, connections, life, log }: Ending, limitMs: number, successor: boolean): Promise<void> {
  const closeIdle = () => void (successor || server.closeIdleConnections())
  closeIdle()
  const sweep = setInterval(closeIdle, 100)
  const cut = setTimeout(() => {
    log.warn({ timeout_ms: limitMs }, 'closing the connections of requests that did not end in time')
    void endStreams(life).then(() => connections.cut())
  }, limitMs)
  await connections.ended()
  clearTimeout(cut)
  clearInterval(sweep)
  server.close()
}

/** Gives open streams `PARTING_MS` to send an event that says why they end. */
async function endStreams({ streams }: Life): Promise<void> {
  const open = streams.all()
  if (open.length === 0) return
  const ended = Promise.all(open.map(({ res }) => once(res, 'close')))
  for (const { state } of open) state.ending.abort(stopping())
  await withTimeout(PARTING_MS, () => ended).catch(() => {})
}

/** Counts running requests. A set of their promises would hold memory: V8 frees the tables of a large busy set late. */
function createWorks() {
  let running = 0
  let idle: (() => void) | undefined
  const end = () => {
    if (--running === 0) idle?.()
  }
  return {
    add(work: Promise<void>) {
      running++
      void work.then(end)
      return work
    },
    async settled(limitMs: number) {
      if (running === 0) return
      await new Promise<void>(resolve => {
        const late = setTimeout(resolve, limitMs)
        idle = () => {
          clearTimeout(late)
          resolve()
        }
      })
    },
  }
}

// An `import` of node:http reads all its exports, including WebSocket, which loads undici: a tenth of the startup time.
const nodeHttp = process.getBuiltinModule('node:http')

/** Node's server, plain or TLS. It opens no port: it gets connections by `emit('connection', socket)`, which Node documents. */
interface ServerSocket extends Disposable {
  readonly server: PlainServer | TlsServer
}

type SocketOptions = Pick<ListenerOptions, 'config' | 'log' | 'listeners'> & {
  /** The context for work outside a request. */
  readonly lasting: CallContext
}

/**
 * Creates Node's server with the configured limits. Throws the errors of `readCertificate`, unless another worker has kept a valid certificate. Disposing it stops
 * watching the certificate files.
 */
export async function createSocket(options: SocketOptions): Promise<ServerSocket> {
  const { config, log, listeners, lasting } = options
  if (!config.ssl.enabled) return plain(config)
  const [listener] = listeners.entries().map(([, item]) => item)
  const keeper = createKeeper(config.ssl, listener, lasting)
  return secure(config, await firstCertificate(config.ssl, keeper, log), keeper, log)
}

/** A server without TLS. */
export const createPlainSocket = (config: ServerConfig): PlainServer => nodeHttp.createServer(optionsOf(config))

const plain = (config: ServerConfig): ServerSocket => ({
  server: createPlainSocket(config),
  [Symbol.dispose]() {},
})

function secure(config: ServerConfig, first: Certificate, keeper: CertificateKeeper, log: Log): ServerSocket {
  const { ssl } = config
  const tls = (certificate: Certificate) => ({ ...certificate, minVersion: 'TLSv1.2' as const })
  const server = process.getBuiltinModule('node:https').createServer({
    ...optionsOf(config),
    ...tls(first),
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: ssl.handshake_timeout_ms,
  })
  server.on('tlsClientError', err => log.debug({ err }, 'a TLS handshake failed'))
  const take = (next: Certificate) => {
    server.setSecureContext(tls(next))
    keeper.keep(next).catch((err: unknown) => log.warn({ err }, 'the supervisor did not keep the new certificate'))
  }
  const watching = watchCertificate({ ssl, first, log, take })
  return { server, [Symbol.dispose]: () => watching[Symbol.dispose]() }
}

const optionsOf = (config: ServerConfig) => ({
  maxHeaderSize: config.header_limit,
  headersTimeout: config.headers_timeout_ms,
  requestTimeout: config.request_timeout_ms,
  keepAliveTimeout: config.keep_alive_ms,
  connectionsCheckingInterval: Math.min(5_000, config.headers_timeout_ms),
  joinDuplicateHeaders: true, // otherwise Node drops the second value, and two contradicting headers look like one
  requireHostHeader: false, // the host guard checks it and answers with an error record
})

/** Address and scheme of the client. Forwarding headers count only if a trusted proxy sent them. */
export interface Addresses {
  /** The client's address: the address of the connection, or behind trusted proxies the rightmost forwarded address that is not a trusted proxy. */
  readonly clientOf: (req: IncomingMessage) => string
  /** `http` or `https`, as the client sees it. */
  readonly schemeOf: (req: IncomingMessage) => string
}

/** `trusted`: addresses and networks (`10.0.0.0/8`, `fd00::/8`). Throws PROXY_INVALID. */
export function createAddresses(trusted: readonly string[]): Addresses {
  if (trusted.length === 0) return { clientOf: peerOf, schemeOf: ownScheme }
  const proxies = listOf(trusted)
  const trusts = (address: string) => proxies.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
  return {
    clientOf(req) {
      const peer = peerOf(req)
      const forwarded = req.headers['x-forwarded-for']
      return forwarded === undefined || peer === '' || !trusts(peer) ? peer : behind(peer, String(forwarded), trusts)
    },
    schemeOf(req) {
      const peer = peerOf(req)
      const scheme = req.headers['x-forwarded-proto']
      return (scheme === 'https' || scheme === 'http') && peer !== '' && trusts(peer) ? scheme : ownScheme(req)
    },
  }
}

/** Returns the rightmost hop that is not a trusted proxy. An invalid address ends the chain, because hops left of it cannot be trusted. */
function behind(peer: string, forwarded: string, trusts: (address: string) => boolean): string {
  let client = peer
  for (const hop of forwarded.split(',').toReversed()) {
    const address = addressIn(hop.trim())
    if (address === undefined) return client
    client = address
    if (!trusts(address)) return client
  }
  return client
}

/** `1.2.3.4`, `1.2.3.4:5678`, `::1`, `[::1]`, `[::1]:5678`. */
function addressIn(hop: string): string | undefined {
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(hop)?.[1] ?? (/^[\d.]+:\d+$/.test(hop) ? hop.slice(0, hop.indexOf(':')) : hop)
  return isIP(bare) === 0 ? undefined : unmapped(bare)
}

function listOf(trusted: readonly string[]): BlockList {
  const list = new BlockList()
  for (const entry of trusted) addTo(list, entry)
  return list
}

function addTo(list: BlockList, entry: string) {
  const [address = '', bits, ...more] = entry.split('/')
  const family = isIPv6(address) ? 'ipv6' : 'ipv4'
  const most = family === 'ipv6' ? 128 : 32
  const isSubnet = bits !== undefined
  if (isIP(address) === 0 || more.length > 0 || (isSubnet && !(/^\d{1,3}$/.test(bits) && Number(bits) <= most)))
    throw proxyInvalid(entry)
  if (isSubnet) list.addSubnet(address, Number(bits), family)
  else list.addAddress(unmapped(address), family)
}

/** The remote address of a connection; empty after it closed. */
export const peerOf = ({ socket }: Pick<IncomingMessage, 'socket'>) => unmapped(socket.remoteAddress ?? '')
const ownScheme = ({ socket }: IncomingMessage) => ('encrypted' in socket ? 'https' : 'http')

/** Returns the IPv4 address in an IPv4-mapped IPv6 address. */
const unmapped = (address: string) => (address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address)

/** Whether a name or address means this machine. */
export const isLoopback = (host: string) => host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
