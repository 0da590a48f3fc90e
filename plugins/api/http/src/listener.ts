import { once } from 'node:events'
import type { IncomingMessage, Server as PlainServer } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import { BlockList, createServer, isIP, isIPv6, type Socket } from 'node:net'
import { type CallContext, codeOf, type Log, type SlotView, withTimeout } from '@svc/core'
import type { Http, ListenAddress, Listener as PortListener } from '@svc/core/contracts'
import { type Certificate, readCertificate, watchCertificate } from './certificate.ts'
import type { ServerConfig } from './config.ts'
import type { Life } from './context.ts'
import { listenFailed, portTaken, proxyInvalid, stopping } from './errors.ts'
import { createLogThrottle } from './log-throttle.ts'

type NodeServer = ServerSocket['server']

/** How a server ends: `successor` when another process takes the new work. */
interface DrainHow {
  readonly successor: boolean
  readonly limitMs?: number
}

/** Where connections come from, and their life: open, drain, closed. */
export interface Listener {
  readonly server: NodeServer
  address(): Awaited<ReturnType<Http['address']>>
  /** Opens the port. Throws PORT_TAKEN, LISTEN_FAILED. */
  listen(callContext: CallContext): Promise<void>
  /** Takes no new connection, lets what runs end within `limitMs` (default `server.shutdown_timeout`), cuts the rest. */
  drain(how: DrainHow): Promise<void>
  /** Counts work as running until it is settled. */
  running(work: Promise<void>): Promise<void>
}

interface ListenerParts {
  readonly server: NodeServer
  readonly config: ServerConfig
  readonly life: Life
  readonly log: Log
  /** What listens in place of this process. */
  readonly listeners: SlotView<PortListener>
}

/** What was cut off may take so long to put its things away (a turn keeps its partial reply). */
const TIDY_MS = 3_000
/** So long a stream that is to end at once may take for its last words. */
const PARTING_MS = 1_000

export function createListener({ server, config, life, log, listeners }: ListenerParts): Listener {
  const { host } = config
  const scheme = config.ssl.enabled ? 'https' : 'http'
  const works = createWorks()
  const connections = createConnections(server, config, log)
  let port: OpenPort | undefined
  return {
    server,
    running: work => works.add(work),
    address: () => port && { host, port: port.number, url: `${scheme}://${urlHost(host)}:${port.number}` },
    async listen(callContext) {
      const [shared] = listeners.entries().map(([, one]) => one)
      port = await openPort({ host, port: config.port }, connections.take, shared, callContext)
      // http.Server starts to watch its time limits with this event alone: it listens, though at a port that another server owns
      server.emit('listening')
      for (const warning of warningsOf(config)) log.warn({ host }, warning)
      log.info({ host, port: port.number, scheme }, 'listening')
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

/** Opens a port of this process, or one of what listens in its place: that one knows itself when this process takes no more. */
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

/** The open connections of this server, at most `max`; further ones are closed at once. */
interface Connections {
  readonly take: (socket: Socket) => void
  /** Resolves when there is none. */
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
    if (left_out !== undefined) log.warn({ max_connections: max, left_out }, 'a connection too many was closed')
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
      socket.allowHalfOpen = !ssl.enabled // as http.Server and https.Server have the connections that they accept themselves
      server.emit('connection', socket)
    },
    ended: async () => void (open.size > 0 && (await last.promise)),
    cut() {
      for (const socket of open) socket.destroy()
    },
  }
}

const HINT = 'switch authentication on (server.auth.enabled: true), or set server.host to 127.0.0.1'

const TLS_OFF =
  'server.ssl names a certificate or a key, and TLS is off: what is sent, keys and tokens too, can be read on the way; set server.ssl.enabled to true'

function warningsOf({ host, auth, cors, ssl }: ServerConfig): string[] {
  const unused = !ssl.enabled && (ssl.cert !== undefined || ssl.key !== undefined) ? [TLS_OFF] : []
  if (auth.enabled) return unused
  return [
    ...unused,
    ...(!isLoopback(host) ? [`everybody who reaches ${host} may use this server: ${HINT}`] : []),
    ...(cors.enabled && cors.origins?.includes('*')
      ? [
          'every page that somebody here opens may use this server: name origins in server.cors.origins, or switch authentication on',
        ]
      : []),
  ]
}

function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

interface Ending extends Pick<ListenerParts, 'server' | 'life' | 'log'> {
  readonly connections: Connections
}

/**
 * Waits for the connections to end. Where a successor takes the new ones, idle ones are left to their keep-alive time-out, since a client may be writing on one
 * just now; so the `close` of http.Server, which cuts idle connections, comes last. A server that ends closes them.
 */
async function endConnections({ server, connections, life, log }: Ending, limitMs: number, successor: boolean): Promise<void> {
  const closeIdle = () => void (successor || server.closeIdleConnections())
  closeIdle()
  const sweep = setInterval(closeIdle, 100)
  const cut = setTimeout(() => {
    log.warn({ timeout_ms: limitMs }, 'requests that did not end in time are cut off')
    void endStreams(life).then(() => connections.cut())
  }, limitMs)
  await connections.ended()
  clearTimeout(cut)
  clearInterval(sweep)
  server.close()
}

/** Lets streams that have begun say that they end, and why; one that does not is cut off all the same. */
async function endStreams({ streams }: Life): Promise<void> {
  if (streams.size === 0) return
  const ended = Promise.all(Array.from(streams, ({ res }) => once(res, 'close')))
  for (const { state } of streams) state.ending.abort(stopping())
  await withTimeout(PARTING_MS, () => ended).catch(() => {})
}

/** Counts only: a set of promises would keep what they hold, for V8 frees the tables that a busy set leaves behind late. */
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

// An `import` of node:http reads all its names, WebSocket among them, and so loads undici: a tenth of a start.
const nodeHttp = process.getBuiltinModule('node:http')

/** Node's server, plain or TLS. It opens no port: connections come to it by `emit('connection', socket)`, as its documentation shows. */
interface ServerSocket extends Disposable {
  readonly server: PlainServer | TlsServer
}

/** Makes Node's server with the limits of the configuration. Throws what is wrong with the certificate. Disposing ends the watch over its files. */
export async function createSocket(config: ServerConfig, log: Log): Promise<ServerSocket> {
  const { ssl } = config
  return ssl.enabled ? secure(config, await readCertificate(ssl), log) : plain(config)
}

const plain = (config: ServerConfig): ServerSocket => ({
  server: nodeHttp.createServer(optionsOf(config)),
  [Symbol.dispose]() {},
})

function secure(config: ServerConfig, first: Certificate, log: Log): ServerSocket {
  const { ssl } = config
  const tls = (one: Certificate) => ({ ...one, minVersion: 'TLSv1.2' as const })
  const server = process.getBuiltinModule('node:https').createServer({
    ...optionsOf(config),
    ...tls(first),
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: ssl.handshake_timeout_ms,
  })
  server.on('tlsClientError', err => log.debug({ err }, 'a TLS handshake failed'))
  const watching = watchCertificate({ ssl, first, log, take: next => server.setSecureContext(tls(next)) })
  return { server, [Symbol.dispose]: () => watching[Symbol.dispose]() }
}

const optionsOf = (config: ServerConfig) => ({
  maxHeaderSize: config.header_limit,
  headersTimeout: config.headers_timeout_ms,
  requestTimeout: config.request_timeout_ms,
  keepAliveTimeout: config.keep_alive_ms,
  connectionsCheckingInterval: Math.min(5_000, config.headers_timeout_ms),
  joinDuplicateHeaders: true, // else Node drops the second of two, and two that contradict each other look like one
  requireHostHeader: false, // the gate `host` asks for it: so the refusal is an error record
})

/** Who asks, by address: forwarding headers count only from proxies that are trusted. */
export interface Addresses {
  /** The client's address: of the connection, or what the nearest trusted proxies say, from the right, up to the first hop that is not a trusted proxy. */
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
      const told = req.headers['x-forwarded-proto']
      return (told === 'https' || told === 'http') && peer !== '' && trusts(peer) ? told : ownScheme(req)
    },
  }
}

/** The rightmost hop that is no trusted proxy; an invalid address ends the chain, because hops left of it cannot be trusted. */
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

/** The address at the other end of a connection; empty where it is gone. */
export const peerOf = ({ socket }: Pick<IncomingMessage, 'socket'>) => unmapped(socket.remoteAddress ?? '')
const ownScheme = ({ socket }: IncomingMessage) => ('encrypted' in socket ? 'https' : 'http')

/** An IPv4 address that comes as IPv6 is one all the same. */
const unmapped = (address: string) => (address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address)

/** Whether a name or address is this machine's own. */
export const isLoopback = (host: string) => host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
