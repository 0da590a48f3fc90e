import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import { type Duplex, pipeline } from 'node:stream'
import { codeOf } from '@svc/core'
import type { Resolve } from '@svc/guarded-fetch'
import { createDestinations, type Destinations, entryOf } from './destinations.ts'

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
  const server = createServer((asked, answer) => void forward(asked, answer, way))
  server.maxConnections = CONNECTIONS
  server.headersTimeout = CONNECT_MS
  server.on('connection', near => keep(near, way.open))
  server.on('connect', (asked: IncomingMessage, near: Duplex, head: Buffer) => void tunnel(asked, near, head, way))
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

async function tunnel({ url = '' }: IncomingMessage, near: Duplex, head: Buffer, way: Way): Promise<void> {
  near.on('error', () => near.destroy())
  const { host, port = 443 } = entryOf(url)
  const found = await addressesOf(host, port, way)
  if (isRefusal(found)) return refuse(near, found)
  if (near.destroyed) return
  const far = keep(connect({ host, port, lookup: lookupOf(found), autoSelectFamily: true }), way.open).setTimeout(CONNECT_MS)
  const onFailed = () => refuse(near, [502, `${host} cannot be reached`])
  near.once('close', () => far.destroy())
  far.once('error', onFailed)
  far.once('connect', () => {
    far.off('error', onFailed).setTimeout(IDLE_MS)
    near.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    far.write(head)
    pipeline(near, far, near, () => {})
  })
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

async function forward(asked: IncomingMessage, answer: ServerResponse, way: Way): Promise<void> {
  const near = asked.socket
  // Who asks before it is answered would have as many connections of this process as it likes behind one of its own.
  if (way.answering.has(near)) return void near.destroy()
  way.answering.add(near)
  answer.on('close', () => way.answering.delete(near))
  const url = URL.parse(asked.url ?? '')
  if (url?.protocol !== 'http:') return void answer.writeHead(400).end('this is a proxy: ask it for a whole URL, http://…')
  const { host } = entryOf(url.host)
  const port = Number(url.port) || 80
  const found = await addressesOf(host, port, way)
  if (isRefusal(found)) return void answer.writeHead(found[0], { 'content-type': 'text/plain' }).end(found[1])
  if (near.destroyed) return
  const headers = {
    ...Object.fromEntries(Object.entries(asked.headers).filter(([name]) => !HOP.test(name))),
    host: url.host,
    // Of a GET Node would send it without any: its end would be the beginning of another request.
    ...('transfer-encoding' in asked.headers ? { 'transfer-encoding': 'chunked' } : {}),
  }
  const options = {
    host,
    port,
    path: url.pathname + url.search,
    method: asked.method,
    headers,
    agent: false,
    lookup: lookupOf(found),
  } as const
  const far = request(options, reply => {
    answer.writeHead(
      reply.statusCode ?? 502,
      Object.fromEntries(Object.entries(reply.headers).filter(([name]) => !HOP.test(name)))
    )
    pipeline(reply, answer, () => {})
  })
  answer.on('close', () => far.destroy())
  far.on('socket', socket => keep(socket, way.open))
  far.on('error', () => (answer.headersSent ? answer.destroy() : answer.writeHead(502).end(`${host} cannot be reached`)))
  pipeline(asked, far, () => {})
}
