import { once } from 'node:events'
import { type Log, within } from '@svc/core'
import type { Http } from '@svc/core/contracts'
import { isLoopback } from './address.ts'
import type { ServerConfig } from './config.ts'
import type { Life } from './context.ts'
import { listenFailed, portTaken, stopping } from './errors.ts'
import type { ServerSocket } from './socket.ts'

type NodeServer = ServerSocket['server']

/** How a server ends: `successor` when another process takes the new work. */
interface DrainHow {
  readonly successor: boolean
  readonly limitMs?: number
}

/** The life of the socket: open, drain, closed. */
export interface Listener {
  readonly server: NodeServer
  address(): Awaited<ReturnType<Http['address']>>
  /** Opens the socket. Throws PORT_TAKEN, LISTEN_FAILED. */
  listen(): Promise<void>
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
}

/** What was cut off may take so long to put its things away (a turn keeps its partial reply). */
const TIDY_MS = 3_000
/** So long a stream that is to end at once may take for its last words. */
const PARTING_MS = 1_000

export function createListener({ server, config, life, log }: ListenerParts): Listener {
  const { host } = config
  const scheme = config.ssl.enabled ? 'https' : 'http'
  const works = createWorks()
  let isOpen = false
  const port = () => {
    const bound = server.address()
    return typeof bound === 'object' && bound !== null ? bound.port : undefined
  }
  return {
    server,
    running: work => works.add(work),
    address() {
      const bound = port()
      return bound === undefined ? undefined : { host, port: bound, url: `${scheme}://${urlHost(host)}:${bound}` }
    },
    async listen() {
      await bind(server, host, config.port)
      isOpen = true
      for (const warning of warningsOf(config)) log.warn({ host }, warning)
      log.info({ host, port: port(), scheme }, 'listening')
    },
    async drain({ successor, limitMs = config.shutdown_timeout * 1000 }) {
      life.draining = true
      life.ending ||= !successor
      if (isOpen) await closeServer({ server, life, log }, limitMs, successor)
      isOpen = false
      await works.settled(TIDY_MS)
    },
  }
}

const MEND = 'switch authentication on (server.auth.enabled: true), or set server.host to 127.0.0.1'

const TLS_OFF =
  'server.ssl names a certificate or a key, and TLS is off: what is sent, keys and tokens too, can be read on the way; set server.ssl.enabled to true'

function warningsOf({ host, auth, cors, ssl }: ServerConfig): string[] {
  const unused = !ssl.enabled && (ssl.cert !== undefined || ssl.key !== undefined) ? [TLS_OFF] : []
  if (auth.enabled) return unused
  return [
    ...unused,
    ...(!isLoopback(host) ? [`everybody who reaches ${host} may use this server: ${MEND}`] : []),
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

function bind(server: NodeServer, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) =>
      reject(error.code === 'EADDRINUSE' ? portTaken(host, port, error) : listenFailed(host, port, error))
    server.once('error', fail)
    server.listen({ host, port }, () => {
      server.off('error', fail)
      resolve()
    })
  })
}

/**
 * Closes the socket and waits for its connections. Where a successor takes the new ones, idle connections are left to their keep-alive time-out: a client may be
 * writing on one just now (`worker.disconnect()` would cut them by the same method); a server that ends closes them.
 */
async function closeServer(
  { server, life, log }: Omit<ListenerParts, 'config'>,
  limitMs: number,
  successor: boolean
): Promise<void> {
  if (successor) server.closeIdleConnections = () => {}
  else Reflect.deleteProperty(server, 'closeIdleConnections')
  const sweep = setInterval(() => server.closeIdleConnections(), 100)
  const cut = setTimeout(() => {
    log.warn({ timeout_ms: limitMs }, 'requests that did not end in time are cut off')
    void endStreams(life).then(() => server.closeAllConnections())
  }, limitMs)
  await new Promise<void>(resolve => server.close(() => resolve()))
  clearTimeout(cut)
  clearInterval(sweep)
}

/** Lets streams that have begun say that they end, and why; one that does not is cut off all the same. */
async function endStreams({ streams }: Life): Promise<void> {
  if (streams.size === 0) return
  const ended = Promise.all(Array.from(streams, ({ res }) => once(res, 'close')))
  for (const { state } of streams) state.ending.abort(stopping())
  await within(PARTING_MS, () => ended).catch(() => {})
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
