import dgram from 'node:dgram'
import dns from 'node:dns'
import { type EventEmitter, errorMonitor, once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import { createServer, isIP, connect as open, Socket, type TcpSocketConnectOpts } from 'node:net'
import { pipeline } from 'node:stream'
import { declaredFor, parseHost } from './declared-hosts.ts'
import { type ReportRefusal, reword } from './errors.ts'

// `import` of node:http reads all its names, WebSocket among them, and so loads undici: a tenth of a start.
const http = () => process.getBuiltinModule('node:http')

interface TunnelOptions {
  /** The Unix socket of the host's proxy. */
  readonly socket: string
  /** The loopback port at which HTTP libraries reach the proxy. */
  readonly port: number
  /** Hosts that the plugin declares: `db.internal:5432`, `*.example.com`, `*`. */
  readonly declared: readonly string[]
}

/** Milliseconds that an open tunnel waits for the socket that requested it. */
const PICKUP_MS = 10_000
/** Maximum names that get an address in the sandbox. */
const MAX_NAMES = 65_536

/** Describes a host that the manifest does not declare, and the line to add. */
type DescribeHost = (host: string) => string

type Address = (error: NodeJS.ErrnoException | null, address?: string, family?: number) => void

/**
 * Connects sockets of this process with the hosts that its plugin declares, so that client libraries work unchanged. `net.connect`, `tls.connect` and
 * libraries on top of them request a tunnel from the host's proxy (`CONNECT host:port`). `dns.lookup` resolves a declared name to a loopback address that stands
 * for it. This is a convenience, not a security boundary: the sandbox has no network, and the proxy checks each request.
 */
export async function openTunnels(options: TunnelOptions, refuse: ReportRefusal, describe: DescribeHost): Promise<void> {
  const waiting = new Map<string, Socket>()
  const addresses = createSequence(1, 128)
  const listener = createServer({ allowHalfOpen: true, pauseOnConnect: true }, near => {
    const far = waiting.get(near.localAddress!)
    waiting.delete(near.localAddress!)
    if (!far) return void near.destroy()
    pipeline(near, far, near, () => {})
    near.resume()
  })
  await once(listener.listen({ host: '0.0.0.0', port: 0 }), 'listening')
  listener.unref()
  const { port } = listener.address() as { readonly port: number }
  const isPlumbing = (to: number) => to === port || to === options.port
  const names = createNames(options.declared)

  /** Opens a tunnel. Calls back with the loopback address at which it waits. */
  const tunnel = (host: string, to: number, done: Address) =>
    requestTunnel(options.socket, host, to, (error, far) => {
      if (error?.code === UNDECLARED) return done(failureTo(host, to, 'EACCES', describe(placeOf(host, to))))
      if (!far) return done(error)
      const address = addresses.next()
      const late = setTimeout(() => waiting.delete(address) && far.destroy(), PICKUP_MS)
      late.unref()
      far.once('close', () => clearTimeout(late))
      waiting.set(address, far)
      done(null, address, 4)
    })
  const isOwn = (host: string, to: number) => isLoopback(host) && (isPlumbing(to) || !names.declares(host, to))
  routeSockets({ port, isPlumbing, isOwn, hostOf: host => names.hostAt(host) ?? host, tunnel, refuse, describe })
  answerLookups(names, refuse, describe)
  reportDatagrams(refuse)
  syncBuiltinESMExports()
}

const isLoopback = (host: string) => host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))

/** Cycles through the addresses `127.<first>.0.1` to `127.<end - 1>.255.254`. */
function createSequence(first: number, end: number): { next(): string } {
  const size = (end - first) * 65_536
  let last = 0
  return {
    next() {
      last = (last + 1) % size
      // some clients refuse addresses that end in 0 or 255
      const tail = last & 255
      if (tail === 0 || tail === 255) return this.next()
      return `127.${first + (last >> 16)}.${(last >> 8) & 255}.${tail}`
    },
  }
}

// --- names ---

interface Names {
  /** Whether a host is declared for a port, or for any port. */
  declares(host: string, port?: number): boolean
  /** The address that stands for a name in this process; undefined if there are too many names. */
  addressOf(host: string): string | undefined
  /** The name that an address stands for. */
  hostAt(address: string): string | undefined
}

function createNames(declared: readonly string[]): Names {
  const entries = declared.map(parseHost)
  const sequence = createSequence(128, 255)
  const byHost = new Map<string, string>()
  const byAddress = new Map<string, string>()
  return {
    declares: (host, port) => {
      const found = declaredFor(entries, host, port)
      // `*` is for hosts outside: the loopback of the sandbox is the plugin's own
      return (isLoopback(host) ? found.filter(item => item.host !== '*') : found).length > 0
    },
    addressOf(host) {
      const known = byHost.get(host)
      if (known !== undefined || byHost.size >= MAX_NAMES) return known
      const address = sequence.next()
      byHost.set(host, address)
      byAddress.set(address, host)
      return address
    },
    hostAt: address => byAddress.get(address),
  }
}

// --- tunnels ---

const UNDECLARED = 'SVC_UNDECLARED'

/** The error of a proxy (RFC 9209, `Proxy-Status: svc; error=…`) as Node reports it for a socket. */
const CODES: Readonly<Record<string, string>> = {
  dns_error: 'ENOTFOUND',
  connection_refused: 'ECONNREFUSED',
  connection_timeout: 'ETIMEDOUT',
  destination_ip_prohibited: 'EACCES',
  http_request_denied: UNDECLARED,
  connection_limit_reached: 'EMFILE',
}

const placeOf = (host: string, port: number) => (isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`)

const failureTo = (host: string, port: number, code: string, why: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`connect ${code} ${placeOf(host, port)}: ${why}`), {
    code,
    errno: 0,
    syscall: 'connect',
    address: host,
    port,
  })

/** Requests a tunnel from the proxy. */
function requestTunnel(
  socketPath: string,
  host: string,
  port: number,
  done: (error: NodeJS.ErrnoException | null, far?: Socket) => void
) {
  const path = placeOf(host, port)
  const fail = (code: string, why: string) => done(failureTo(host, port, code, why))
  const createConnection = () => open({ path: socketPath, allowHalfOpen: true })
  http()
    .request({ createConnection, method: 'CONNECT', path, headers: { host: path } })
    .once('connect', (answer, far, head) => {
      if (answer.statusCode === 200) {
        far.on('error', () => {})
        if (head.length > 0) far.unshift(head)
        return done(null, far as Socket)
      }
      far.destroy()
      const [, error = ''] = /\berror=(\w+)/.exec(String(answer.headers['proxy-status'] ?? '')) ?? []
      fail(CODES[error] ?? 'ECONNREFUSED', head.toString() || 'the host cannot be reached')
    })
    .once('error', error => fail('ECONNREFUSED', error.message))
    .end()
}

interface Routes {
  /** The port at which the tunnels wait in this process. */
  readonly port: number
  /** Whether a port leads to the proxy. A connection that breaks there is no refusal: the proxy reports its own. */
  readonly isPlumbing: (port: number) => boolean
  readonly isOwn: (host: string, port: number) => boolean
  readonly hostOf: (address: string) => string
  readonly tunnel: (host: string, port: number, done: Address) => void
  readonly refuse: ReportRefusal
  readonly describe: DescribeHost
}

type Listener = () => void

/** Replaces the method that every kind of connection calls, and changes only its arguments. */
function routeSockets({ port, isPlumbing, isOwn, hostOf, tunnel, refuse, describe }: Routes): void {
  // oxlint-disable-next-line typescript/unbound-method -- bound at each call
  const { connect } = Socket.prototype
  const routed = function (this: Socket, ...args: unknown[]) {
    const [options, listener] = connectArguments(args)
    const host = hostOf(String(options.host ?? 'localhost').toLowerCase())
    const to = Number(options.port)
    if (options.path !== undefined) return Reflect.apply(connect, this, args) as Socket
    if (isOwn(host, to)) {
      if (!isPlumbing(to))
        (this as EventEmitter).once(errorMonitor, (error: NodeJS.ErrnoException) => {
          refuse('network', placeOf(host, to))
          const said = error.message || `connect ${error.code} ${placeOf(host, to)}`
          if (error.code === 'ECONNREFUSED') reword(error, `${said}: ${describe(placeOf(host, to))}`)
        })
      return Reflect.apply(connect, this, args) as Socket
    }
    const { family: _, localAddress: __, localPort: ___, ...rest } = options
    const lookup = (_name: string, _options: object, done: Address) => tunnel(host, to, done)
    // a name, so that the socket calls `lookup`
    const asked = { ...rest, host: isIP(host) === 0 ? host : 'address.invalid', port, lookup, autoSelectFamily: false }
    return Reflect.apply(connect, this, listener ? [asked, listener] : [asked]) as Socket
  }
  Socket.prototype.connect = routed as typeof connect
}

type ConnectOptions = Partial<TcpSocketConnectOpts> & { readonly path?: string }

/** Parses the arguments of `connect`: `(options)`, `(port, host)` or `(path)`, each with a listener; or Node's internal array of options and listener. */
function connectArguments(args: readonly unknown[]): readonly [ConnectOptions, Listener | undefined] {
  const [first, second] = args
  if (Array.isArray(first)) return [first[0] as ConnectOptions, (first[1] as Listener | null) ?? undefined]
  const last = args.at(-1)
  const listener = typeof last === 'function' ? (last as Listener) : undefined
  if (typeof first === 'object' && first !== null) return [first as ConnectOptions, listener]
  if (typeof first === 'string' && !(Number(first) >= 0)) return [{ path: first }, listener]
  return [{ port: Number(first), ...(typeof second === 'string' && { host: second }) }, listener]
}

// --- lookups ---

interface LookupRequest {
  readonly all?: boolean
  readonly ttl?: boolean
}
type Back = (error: NodeJS.ErrnoException | null, ...found: unknown[]) => void
type Call = (...args: unknown[]) => unknown

/** Functions that only a name server can answer. */
const DNS_QUERIES =
  `resolve6 resolveAny resolveCaa resolveCname resolveMx resolveNaptr resolveNs resolvePtr resolveSoa resolveSrv resolveTxt reverse`.split(
    ' '
  )

/** What queries name servers: the functions of the modules, and the methods of their resolvers. */
const RESOLVERS = [
  { owner: dns, isPromised: false },
  { owner: dns.promises, isPromised: true },
  { owner: dns.Resolver.prototype, isPromised: false },
  { owner: dns.promises.Resolver.prototype, isPromised: true },
]

/** Resolves declared names. The sandbox has no name server. */
function answerLookups(names: Names, refuse: ReportRefusal, describe: DescribeHost): void {
  const found = (call: string, host: string): string => {
    if (isLoopback(host)) return names.declares(host) ? names.addressOf(host)! : '127.0.0.1'
    const address = names.declares(host) ? names.addressOf(host) : undefined
    if (address !== undefined) return address
    refuse('network', host)
    throw Object.assign(new Error(`${call} ENOTFOUND ${host}: ${describe(host)}`), {
      code: 'ENOTFOUND',
      syscall: call,
      hostname: host,
    })
  }
  const lookup = (host: string, asked: LookupRequest) => {
    const address = found('getaddrinfo', host.toLowerCase())
    return asked.all ? [{ address, family: 4 }] : { address, family: 4 }
  }
  const resolve4 = (host: string, { ttl = false }: LookupRequest) => {
    const address = found('queryA', host.toLowerCase())
    return [ttl ? { address, ttl: 0 } : address]
  }
  const optionsIn = (given: unknown): LookupRequest => (typeof given === 'object' && given !== null ? given : {})
  const isName = (host: unknown): host is string => typeof host === 'string' && host !== '' && isIP(host) === 0

  replace(dns.promises, 'lookup', original => async (host, asked) => {
    if (!isName(host)) return original(host, asked)
    return lookup(host, optionsIn(asked))
  })
  replace(dns, 'lookup', original => (host, ...rest) => {
    const back = rest.at(-1)
    if (!isName(host) || typeof back !== 'function') return original(host, ...rest)
    const asked = optionsIn(rest[0])
    return answer(back as Back, () => {
      const current = lookup(host, asked)
      return Array.isArray(current) ? [current] : [current.address, current.family]
    })
  })
  const isForA = (type: unknown) => type === undefined || typeof type === 'function' || type === 'A'
  const report = (host: unknown) => refuse('network', `dns:${String(host)}`)
  for (const { owner, isPromised } of RESOLVERS) {
    for (const name of DNS_QUERIES)
      replace(owner, name, original => (host, ...rest) => {
        report(host)
        return original(host, ...rest)
      })
    for (const name of ['resolve4', 'resolve'] as const)
      replace(owner, name, original => (host, ...rest) => {
        const back = rest.at(-1)
        if (name === 'resolve' && !isForA(rest[0])) report(host)
        else if (isName(host)) {
          const find = () => resolve4(host, name === 'resolve4' ? optionsIn(rest[0]) : {})
          if (isPromised) return new Promise(resolve => resolve(find()))
          if (typeof back === 'function') return answer(back as Back, () => [find()])
        }
        return original(host, ...rest)
      })
  }
}

/** Calls back with what `find` returns or throws. Returns what a query of a name server returns: an object. */
function answer(back: Back, find: () => readonly unknown[]): object {
  let failure: NodeJS.ErrnoException | null = null
  let found: readonly unknown[] = []
  try {
    found = find()
  } catch (error) {
    failure = error as NodeJS.ErrnoException
  }
  process.nextTick(() => back(failure, ...found))
  return {}
}

/** Replaces a function of a Node module, and copies the properties of the original (`util.promisify` reads one). */
function replace(module: object, name: string, by: (original: Call) => Call): void {
  const original = Reflect.get(module, name) as Call
  const now = function (this: unknown, ...args: unknown[]) {
    return by((...given) => Reflect.apply(original, this ?? module, given))(...args)
  }
  for (const key of Reflect.ownKeys(original))
    if (!['length', 'name', 'prototype'].includes(key as string))
      Object.defineProperty(now, key, Reflect.getOwnPropertyDescriptor(original, key)!)
  Reflect.set(module, name, now)
}

// --- datagrams ---

/** Reports datagrams as refused: no manifest can open them. */
function reportDatagrams(refuse: ReportRefusal): void {
  // oxlint-disable-next-line typescript/unbound-method -- bound at each call
  const { connect, send } = dgram.Socket.prototype
  const report = (host: unknown, port: unknown) => {
    if (typeof host === 'string' && !isLoopback(host)) refuse('network', `udp:${host}:${String(port)}`)
  }
  const reportedConnect = function (this: dgram.Socket, ...args: unknown[]) {
    report(args[1], args[0])
    return Reflect.apply(connect, this, args) as void
  }
  const reportedSend = function (this: dgram.Socket, ...args: unknown[]) {
    const at = args.findLastIndex(arg => typeof arg === 'number')
    // a connected socket sends without a port
    if (at !== -1) report(args[at + 1], args[at])
    return Reflect.apply(send, this, args) as void
  }
  dgram.Socket.prototype.connect = reportedConnect as typeof connect
  dgram.Socket.prototype.send = reportedSend as typeof send
}
