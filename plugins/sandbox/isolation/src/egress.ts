import { once } from 'node:events'
import type { ClientRequest, IncomingMessage, Server, ServerResponse } from 'node:http'
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import { type Duplex, pipeline } from 'node:stream'
import { pipeline as piped } from 'node:stream/promises'
import { codeOf } from '@svc/core'
import { createAddressGuard, createGuardedResolve, type Resolve } from '@svc/safe-fetch'

// An `import` of node:http reads all its names, WebSocket among them, and so loads undici: a tenth of a start.
const { createServer, request } = process.getBuiltinModule('node:http')

/** Connections of one plugin at once. */
const CONNECTIONS = 64
/** Names that one plugin may look for at once: what finds them is everybody's. */
const NAMES = 16
const IDLE_MS = 60_000
const CONNECT_MS = 10_000
/** Of one hop alone, by RFC 9110 and by custom. */
const HOP = /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|host)$/i

export interface EgressOptions {
  readonly declared: readonly string[]
  /** A host that it may not reach: not declared, or it leads to an address that is not public. */
  readonly onRefused: (host: string, why: 'undeclared' | 'address') => void
  /** Finds the addresses of names instead of the system. */
  readonly resolve?: Resolve
}

/** The only way out of a plugin's namespace: an HTTP proxy at a socket, that connects to declared hosts only, at the very addresses that were looked at. */
export async function openEgress(socket: string, { declared, onRefused, resolve }: EgressOptions): Promise<AsyncDisposable> {
  const destinations = createDestinations(declared, resolve)
  const way: Way = { destinations, onRefused, open: new Set(), answering: new Set(), looking: new Map() }
  const server = createServer((asked, answer) => {
    const fail = () => (answer.headersSent ? answer.destroy() : answer.writeHead(502).end('the host cannot be reached'))
    forward(asked, answer, way).catch(fail)
  })
  server.maxConnections = CONNECTIONS
  server.headersTimeout = CONNECT_MS
  // of a connection that could not be taken: its plugin sees that, and this process goes on
  server.on('error', () => {})
  server.on('connection', near => keep(near, way.open))
  server.on('connect', (asked: IncomingMessage, near: Duplex, head: Buffer) => {
    near.on('error', () => near.destroy())
    tunnel(asked, near, head, way).catch(() => refuse(near, [502, 'the host cannot be reached']))
  })
  server.listen(socket)
  await once(server, 'listening')
  return { [Symbol.asyncDispose]: () => close(server, way.open) }
}

interface Way {
  readonly destinations: Destinations
  readonly onRefused: EgressOptions['onRefused']
  readonly open: Set<Duplex>
  /** Connections with a request that is not answered yet. */
  readonly answering: Set<Duplex>
  /** Names that are looked for, with their ports. */
  readonly looking: Map<string, Promise<readonly string[]>>
}

function keep(socket: Socket, open: Set<Duplex>): Socket {
  open.add(socket)
  socket.setTimeout(IDLE_MS, () => socket.destroy(new Error('it was silent for too long')))
  socket.on('error', () => socket.destroy())
  socket.on('close', () => open.delete(socket))
  return socket
}

async function close(server: Server, open: ReadonlySet<Duplex>): Promise<void> {
  for (const one of open) one.destroy()
  await new Promise(resolve => server.close(resolve))
}

/** How a refused request is answered: status and words. */
type Refusal = readonly [status: number, words: string]

/** The addresses to connect to, or why not. */
async function addressesOf(host: string, port: number, way: Way): Promise<readonly string[] | Refusal> {
  const { destinations, onRefused } = way
  const shown = port === 80 || port === 443 ? host : `${host}:${port}`
  if (!destinations.declares(host, port)) {
    onRefused(shown, 'undeclared')
    return [403, `${shown} is not declared in the manifest of this plugin`]
  }
  const key = `${host}:${port}`
  if (way.looking.size >= NAMES && !way.looking.has(key)) return [503, `more than ${NAMES} names are looked for at once`]
  try {
    return await look(key, () => destinations.resolve(host, port), way)
  } catch (error) {
    if (codeOf(error) !== 'ADDRESS_FORBIDDEN') return [502, `${host} leads to no address`]
    onRefused(shown, 'address')
    return [403, `${host} leads to an address that is not public`]
  }
}

/** One question for all that ask it at the same time. */
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

/** The host and the port of `host:port`; undefined for what no connection can lead to. */
function targetOf(authority: string, usual: number): Target | undefined {
  const isBracketed = BRACKETED.test(authority)
  if (!isBracketed && !NAMED.test(authority)) return undefined
  const { host, port = usual } = entryOf(authority)
  const isHost = isBracketed ? isIP(host) === 6 : host !== '' && host.length <= LONGEST_NAME
  return isHost && port > 0 && port < 65_536 ? { host, port } : undefined
}

/** Everything of a tunnel happens within this promise: what throws in a listener of a socket would end the worker. */
async function tunnel({ url = '' }: IncomingMessage, near: Duplex, head: Buffer, way: Way): Promise<void> {
  const target = targetOf(url, 443)
  if (!target) return refuse(near, [400, 'this is a proxy: ask it for host:port'])
  const { host, port } = target
  const found = await addressesOf(host, port, way)
  if (isRefusal(found)) return refuse(near, found)
  if (near.destroyed) return
  const far = keep(connect({ host, port, lookup: lookupOf(found), autoSelectFamily: true }), way.open).setTimeout(CONNECT_MS)
  near.once('close', () => far.destroy(new Error('the plugin has left')))
  await once(far, 'connect')
  far.setTimeout(IDLE_MS)
  near.write('HTTP/1.1 200 Connection Established\r\n\r\n')
  far.write(head)
  pipeline(near, far, near, () => {})
}

function refuse(near: Duplex, [status, words]: Refusal): void {
  if (!near.writable) return
  const head = [
    `HTTP/1.1 ${status} Refused`,
    'Content-Type: text/plain',
    `Content-Length: ${Buffer.byteLength(words)}`,
    'Connection: close',
  ]
  near.end(`${head.join('\r\n')}\r\n\r\n${words}`)
}

/** Every connection goes where was looked, whatever the name leads to a moment later. */
const lookupOf =
  (addresses: readonly string[]): LookupFunction =>
  (_host, options, found) => {
    const all = addresses.map(address => ({ address, family: isIP(address) }))
    if (options.all) found(null, all)
    else found(null, all[0]!.address, all[0]!.family)
  }

/** Everything of a request happens within this promise, too. */
async function forward(asked: IncomingMessage, answer: ServerResponse, way: Way): Promise<void> {
  const near = asked.socket
  // Who asks before it is answered would have as many connections of this process as it likes behind one of its own.
  if (way.answering.has(near)) return void near.destroy()
  way.answering.add(near)
  answer.on('close', () => way.answering.delete(near))
  const url = URL.parse(asked.url ?? '')
  const target = url?.protocol === 'http:' ? targetOf(url.host, 80) : undefined
  if (!url || !target) return void answer.writeHead(400).end('this is a proxy: ask it for a whole URL, http://…')
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
      // Of a GET Node would send it without any: its end would be the beginning of another request.
      ...('transfer-encoding' in asked.headers ? { 'transfer-encoding': 'chunked' } : {}),
    },
    agent: false,
    lookup: lookupOf(found),
  })
  answer.on('close', () => far.destroy())
  far.on('socket', socket => keep(socket, way.open))
  pipeline(asked, far, () => {})
  const reply = await replyTo(far)
  answer.writeHead(reply.statusCode!, endToEnd(reply))
  await piped(reply, answer)
}

const endToEnd = ({ headers }: IncomingMessage) => Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP.test(name)))

/** What a server answers. A status below 200 is no answer: Node's parser lets it through and Node's writer throws. */
function replyTo(far: ClientRequest): Promise<IncomingMessage> {
  return new Promise((done, fail) => {
    const refuseReply = () => {
      far.destroy()
      fail(new Error('it is no answer'))
    }
    far.on('response', reply => (reply.statusCode! < 200 ? refuseReply() : done(reply)))
    far.on('upgrade', refuseReply)
    far.on('error', fail)
    far.on('close', refuseReply)
  })
}

const DNS_MS = 5000

/** Where a plugin may connect to. */
interface Destinations {
  /** Whether a host is declared, by its name alone. */
  declares(host: string, port: number): boolean
  /** The addresses to connect to at this port. Throws ADDRESS_FORBIDDEN, HOST_UNKNOWN. */
  resolve(host: string, port: number): Promise<readonly string[]>
}

/**
 * Hosts as a manifest declares them: `api.example.com`, `api.example.com:8443`, `*.example.com`, an address, `localhost`, and `*` for every public one. A name
 * may lead to what is not public only where that very address is declared, with that port if it has one, or it is `localhost`.
 */
export function createDestinations(declared: readonly string[], resolve?: Resolve): Destinations {
  const entries = declared.map(entryOf)
  const at = (port: number) => entries.filter(entry => (entry.port ?? port) === port)
  return {
    declares: (host, port) => at(port).some(entry => isFor(entry.host, host)),
    resolve(host, port) {
      const named = at(port).map(entry => entry.host)
      const guard = createAddressGuard(named.filter(one => isIP(one) !== 0 || one === 'localhost'))
      return createGuardedResolve(guard, DNS_MS, isIP(host) === 0 ? resolve : async () => [host])(host, port)
    },
  }
}

/** `host:port`, `[::1]:80`, each without its port, too. Undefined for what is none. */
function entryOf(written: string): { readonly host: string; readonly port?: number } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d{1,5}))?$/.exec(written) ?? []
  const host = bracketed ?? plain ?? written
  return { host: host.toLowerCase().replace(/\.$/, ''), ...(port === undefined ? {} : { port: Number(port) }) }
}

function isFor(declared: string, host: string): boolean {
  if (declared === '*') return true
  return declared.startsWith('*.') ? host.endsWith(declared.slice(1)) && host.length >= declared.length : declared === host
}
