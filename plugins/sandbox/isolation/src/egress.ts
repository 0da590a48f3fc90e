import { once } from 'node:events'
import type { ClientRequest, IncomingMessage, Server, ServerResponse } from 'node:http'
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import { type Duplex, pipeline } from 'node:stream'
import { pipeline as piped } from 'node:stream/promises'
import { codeOf } from '@svc/core'
import { declaredFor, parseHost } from '@svc/runtime/isolation'
import { createAddressGuard, createGuardedResolve, type Resolve } from '@svc/safe-fetch'

// An `import` of node:http reads all its names, WebSocket among them, and so loads undici: a tenth of a start.
const { createServer, request } = process.getBuiltinModule('node:http')

/** Concurrent plain requests and concurrent tunnels of one plugin. */
const REQUESTS = 64
const TUNNELS = 256
/** Concurrent name lookups of one plugin: all plugins share the resolver. */
const NAMES = 16
const IDLE_MS = 60_000
/** Listeners of one socket: Node's server, two pipelines and this proxy. */
const LISTENERS = 20
const CONNECT_MS = 10_000
/** A tunnel can be silent for any time (a pool, a subscription). TCP probes detect a peer that has gone. */
const PROBE_MS = 60_000
/** Hop-by-hop headers: those of RFC 9110 and the customary ones. */
const HOP = /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|host)$/i

export interface EgressOptions {
  readonly declared: readonly string[]
  /** Called for a host that the plugin may not reach: it is not declared, or resolves to an address that is not public. */
  readonly onRefused: (host: string, why: 'undeclared' | 'address') => void
  /** Resolves names in place of the system. */
  readonly resolve?: Resolve
  /** Milliseconds without a byte after which the proxy closes a connection that is not a tunnel. Default 60,000. */
  readonly idleMs?: number
}

/**
 * Opens an HTTP proxy at a Unix socket: the only way out of a plugin's network namespace. It connects to declared hosts only, at exactly the addresses that it
 * has checked.
 */
export async function openEgress(
  socket: string,
  { declared, onRefused, resolve, idleMs = IDLE_MS }: EgressOptions
): Promise<AsyncDisposable> {
  const destinations = createDestinations(declared, resolve)
  const way: Way = {
    destinations,
    onRefused,
    idleMs,
    open: new Set(),
    tunnels: new Set(),
    answering: new Set(),
    looking: new Map(),
  }
  const server = createServer((asked, answer) => {
    const fail = (error: unknown) => {
      const [status, message] = unreachable(error)
      return answer.headersSent ? answer.destroy() : answer.writeHead(status).end(message)
    }
    forward(asked, answer, way).catch(fail)
  })
  server.maxConnections = REQUESTS + TUNNELS
  server.headersTimeout = CONNECT_MS
  // a connection that the server could not accept fails in the plugin, not here
  server.on('error', () => {})
  server.on('connection', near => keep(near, way))
  server.on('connect', (asked: IncomingMessage, near: Duplex, head: Buffer) => {
    near.on('error', () => near.destroy())
    tunnel(asked, near as Socket, head, way).catch(error => refuse(near, unreachable(error)))
  })
  server.listen(socket)
  await once(server, 'listening')
  return { [Symbol.asyncDispose]: () => close(server, way.open) }
}

interface Way {
  readonly destinations: Destinations
  readonly onRefused: EgressOptions['onRefused']
  readonly idleMs: number
  readonly open: Set<Duplex>
  readonly tunnels: Set<Duplex>
  /** Connections with a request in progress. */
  readonly answering: Set<Duplex>
  /** Lookups in progress, by `host:port`. */
  readonly looking: Map<string, Promise<readonly string[]>>
}

function keep(socket: Socket, { open, idleMs }: Way): Socket {
  open.add(socket)
  socket.setMaxListeners(LISTENERS)
  socket.setTimeout(idleMs, () => socket.destroy(new Error('the connection was idle for too long')))
  socket.on('error', () => socket.destroy())
  socket.on('close', () => open.delete(socket))
  return socket
}

async function close(server: Server, open: ReadonlySet<Duplex>): Promise<void> {
  for (const duplex of open) duplex.destroy()
  await new Promise(resolve => server.close(resolve))
}

/** The answer to a refused request: status, message, and the error type of RFC 9209. */
type Refusal = readonly [status: number, message: string, error: string]

/** The message, and the error type of RFC 9209, by the code of Node's error. */
const ERRORS: Readonly<Record<string, readonly [message: string, error: string]>> = {
  ECONNREFUSED: ['no server answers at this port', 'connection_refused'],
  ETIMEDOUT: ['the host does not answer', 'connection_timeout'],
}
const UNREACHABLE = ['the host cannot be reached', 'connection_terminated'] as const
const unreachable = (error: unknown): Refusal => [502, ...(ERRORS[codeOf(error) ?? ''] ?? UNREACHABLE)]

/** Returns the addresses to connect to, or the refusal. */
async function addressesOf(host: string, port: number, way: Way): Promise<readonly string[] | Refusal> {
  const { destinations, onRefused } = way
  const shown = port === 80 || port === 443 ? host : `${host}:${port}`
  if (!destinations.declares(host, port)) {
    onRefused(shown, 'undeclared')
    return [403, `${shown} is not declared in the manifest of this plugin`, 'http_request_denied']
  }
  const key = `${host}:${port}`
  if (way.looking.size >= NAMES && !way.looking.has(key))
    return [503, `more than ${NAMES} names are being resolved at once`, 'connection_limit_reached']
  try {
    return await look(key, () => destinations.resolve(host, port), way)
  } catch (error) {
    if (codeOf(error) !== 'ADDRESS_FORBIDDEN') return [502, `${host} leads to no address`, 'dns_error']
    onRefused(shown, 'address')
    const hint = `declare it with its port ("${host}:${port}"), or the address itself`
    return [403, `${host} leads to an address that is not public; ${hint}`, 'destination_ip_prohibited']
  }
}

/** Callers that ask for the same host at the same time share one lookup. */
function look(key: string, resolve: () => Promise<readonly string[]>, { looking }: Way): Promise<readonly string[]> {
  const asked = looking.get(key) ?? resolve().finally(() => looking.delete(key))
  looking.set(key, asked)
  return asked
}

const isRefusal = (found: readonly string[] | Refusal): found is Refusal => typeof found[0] === 'number'

interface Target {
  readonly host: string
  readonly port: number
}

const BRACKETED = /^\[[\d.:a-f]+\](:\d+)?$/i
const NAMED = /^[\w-]+(\.[\w-]+)*\.?(:\d+)?$/
const LONGEST_NAME = 253

/** Parses `host:port`. Returns undefined where no connection is possible. */
function targetOf(authority: string, usual: number): Target | undefined {
  const isBracketed = BRACKETED.test(authority)
  if (!isBracketed && !NAMED.test(authority)) return undefined
  const { host, port = usual } = parseHost(authority)
  const isHost = isBracketed ? isIP(host) === 6 : host !== '' && host.length <= LONGEST_NAME
  return isHost && port > 0 && port < 65_536 ? { host, port } : undefined
}

/** All work of a tunnel runs within this promise: an exception in a socket's listener would end the worker. */
async function tunnel({ url = '' }: IncomingMessage, near: Socket, head: Buffer, way: Way): Promise<void> {
  const target = targetOf(url, 443)
  if (!target) return refuse(near, [400, 'this is a proxy: request host:port', 'http_request_error'])
  if (way.tunnels.size >= TUNNELS)
    return refuse(near, [503, `this plugin has ${TUNNELS} connections open, which is its limit`, 'connection_limit_reached'])
  way.tunnels.add(near)
  near.once('close', () => way.tunnels.delete(near))
  const { host, port } = target
  const found = await addressesOf(host, port, way)
  if (isRefusal(found)) return refuse(near, found)
  if (near.destroyed) return
  const options = { host, port, lookup: lookupOf(found), autoSelectFamily: true, allowHalfOpen: true, noDelay: true }
  const far = keep(connect(options), way).setTimeout(CONNECT_MS)
  near.once('close', () => far.destroy(new Error('the plugin closed the connection')))
  await once(far, 'connect')
  far.setTimeout(0).setKeepAlive(true, PROBE_MS)
  near.setTimeout(0)
  near.write('HTTP/1.1 200 Connection Established\r\n\r\n')
  far.write(head)
  pipeline(near, far, near, () => {})
}

function refuse(near: Duplex, [status, message, error]: Refusal): void {
  if (!near.writable) return
  const head = [
    `HTTP/1.1 ${status} Refused`,
    'Content-Type: text/plain',
    `Content-Length: ${Buffer.byteLength(message)}`,
    'Connection: close',
    `Proxy-Status: svc; error=${error}`,
  ]
  near.end(`${head.join('\r\n')}\r\n\r\n${message}`)
}

/** Connects to the checked addresses, even if the name resolves to others a moment later. */
const lookupOf =
  (addresses: readonly string[]): LookupFunction =>
  (_host, options, found) => {
    const all = addresses.map(address => ({ address, family: isIP(address) }))
    if (options.all) found(null, all)
    else found(null, all[0]!.address, all[0]!.family)
  }

/** All work of a request runs within this promise, for the same reason. */
async function forward(asked: IncomingMessage, answer: ServerResponse, way: Way): Promise<void> {
  const near = asked.socket
  // Pipelined requests would give one connection of the plugin any number of connections of this process.
  if (way.answering.has(near)) return void near.destroy()
  way.answering.add(near)
  answer.on('close', () => way.answering.delete(near))
  const url = URL.parse(asked.url ?? '')
  const target = url?.protocol === 'http:' ? targetOf(url.host, 80) : undefined
  if (!url || !target) return void answer.writeHead(400).end('this is a proxy: request a full URL, http://…')
  const found = await addressesOf(target.host, target.port, way)
  if (isRefusal(found)) return void answer.writeHead(found[0], { 'content-type': 'text/plain' }).end(found[1])
  if (near.destroyed) return
  const far = request({
    ...target,
    path: url.pathname + url.search,
    method: asked.method,
    headers: {
      ...endToEnd(asked),
      host: url.host,
      // Node would send the body of a GET without it, and its bytes would start another request (request smuggling).
      ...('transfer-encoding' in asked.headers ? { 'transfer-encoding': 'chunked' } : {}),
    },
    agent: false,
    lookup: lookupOf(found),
  })
  answer.on('close', () => far.destroy())
  far.on('socket', socket => keep(socket, way))
  pipeline(asked, far, () => {})
  const reply = await replyTo(far)
  answer.writeHead(reply.statusCode!, endToEnd(reply))
  await piped(reply, answer)
}

const endToEnd = ({ headers }: IncomingMessage) => Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP.test(name)))

/** Waits for the response. A status below 200 fails: Node's parser accepts it, but Node's writer throws. */
function replyTo(far: ClientRequest): Promise<IncomingMessage> {
  return new Promise((done, fail) => {
    const refuseReply = () => {
      far.destroy()
      fail(new Error('the server sent no valid response'))
    }
    far.on('response', reply => (reply.statusCode! < 200 ? refuseReply() : done(reply)))
    far.on('upgrade', refuseReply)
    far.on('error', fail)
    far.on('close', refuseReply)
  })
}

const DNS_MS = 5000
/** Private networks (RFC 1918, RFC 6598, RFC 4193), without loopback and without the metadata addresses of clouds. */
const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7']

/** The hosts that a plugin may connect to. */
interface Destinations {
  /** Whether the manifest declares a host, by its name alone. */
  declares(host: string, port: number): boolean
  /** Resolves a host to the addresses that the plugin may reach at this port. Throws ADDRESS_FORBIDDEN, HOST_UNKNOWN. */
  resolve(host: string, port: number): Promise<readonly string[]>
}

/**
 * Reads hosts as a manifest declares them: `api.example.com`, `api.example.com:8443`, `*.example.com`, an address, `localhost`, and `*` for every public host.
 * A name can resolve to an address that is not public in three cases. The manifest declares that address, with this port if it names one. The name is
 * `localhost`. Or the manifest declares the name with its port: then it can resolve to a private network, such as a database of the operator, which the operator
 * has consented to.
 */
export function createDestinations(declared: readonly string[], resolve?: Resolve): Destinations {
  const entries = declared.map(parseHost)
  return {
    declares: (host, port) => declaredFor(entries, host, port).length > 0,
    resolve(host, port) {
      const named = entries.filter(entry => (entry.port ?? port) === port).map(entry => entry.host)
      const isExact = entries.some(entry => entry.host === host && entry.port === port)
      const guard = createAddressGuard([
        ...named.filter(item => isIP(item) !== 0 || item === 'localhost'),
        ...(isExact ? PRIVATE : []),
      ])
      return createGuardedResolve(guard, DNS_MS, isIP(host) === 0 ? resolve : async () => [host])(host, port)
    },
  }
}
