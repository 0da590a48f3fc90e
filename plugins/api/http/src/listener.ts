import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { codeOf, type Log, type SlotView, type CallContext, withTimeout } from '@svc/core'
import type { Http, ListenAddress, Listener as PortListener } from '@svc/core/contracts'
import { isLoopback } from './address.ts'
import type { ServerConfig } from './config.ts'
import type { Life } from './context.ts'
import { listenFailed, portTaken, stopping } from './errors.ts'
import { createLogThrottle } from './log-throttle.ts'
import type { ServerSocket } from './socket.ts'

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
