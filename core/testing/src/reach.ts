import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Socket } from 'node:net'
import { sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type PackageInfo, matchesPattern } from '@svc/core'
import { matchesHost } from '@svc/core/internal'
import { COMMON_VARIABLES, packageOfCaller } from '@svc/runtime/isolation'
import { runningPlugin } from './leftovers.ts'
import { lookText } from './plugin-log.ts'

/** Tracks accesses of a package's code while other code runs. */
export interface Reach extends Disposable {
  /** Undeclared accesses, each once, as a sentence. */
  found(): readonly string[]
  /** Undeclared variables that only its dependencies read. */
  warnings(): readonly string[]
}

/**
 * Observes `process.env`, HTTP requests and TCP connections, for authors who forgot a declaration. It enforces nothing. Loopback
 * servers whose address is in `given`, the configuration and environment of the samples, belong to the test and need no
 * declaration.
 */
export function watchReach({ name: plugin, folder, manifest: { permissions = {} } }: PackageInfo, given: string): Reach {
  const [seen, looked] = [new Set<string>(), new Set<string>()]
  const isOwn = stackOf(folder)
  const module = pathToFileURL(folder + sep).href
  const real = process.env
  const note = (name: string) => {
    if (COMMON_VARIABLES.test(name) || declares(permissions.env, name) || !isOwn() || isNode()) return
    const by = packageOfCaller(module, callers().filter(isForeign).join('\n'))
    if (by === undefined) seen.add(`it reads the variable ${name}: add it to "permissions": { "env": ["${name}"] }`)
    else looked.add(lookText(name, by))
  }
  process.env = new Proxy(real, {
    get(target, name) {
      if (typeof name === 'string') note(name)
      return Reflect.get(target, name)
    },
    has(target, name) {
      if (typeof name === 'string') note(name)
      return Reflect.has(target, name)
    },
    // `process.env` accepts an assignment only on itself
    set: (target, name, value) => Reflect.set(target, name, value),
  })
  const isMeant = (host: string) => matchesHost(hostsOf(permissions.network), host) || (isLoopback(host) && given.includes(host))
  const ask = (host: string) => {
    const shown = host.replace(/:(80|443)$/, '')
    const isMine = () => isOwn() || runningPlugin() === plugin
    if (!isMeant(host) && !isMeant(shown) && isMine())
      seen.add(`it asks ${shown}: add it to "permissions": { "network": ["${shown}"] }`)
  }
  const [requests, sockets] = [hearRequests(ask), hearSockets(ask)]
  return {
    found: () => [...seen],
    warnings: () => [...looked],
    [Symbol.dispose]() {
      process.env = real
      requests[Symbol.dispose]()
      sockets[Symbol.dispose]()
    },
  }
}

const declares = (declared: readonly string[] = [], name: string) => declared.some(item => matchesPattern(item, name))

/** A host from the configuration can be any. The sandbox knows its value. */
const hostsOf = (network: readonly string[] = []) => (network.some(one => one.startsWith('<')) ? ['*'] : network)

const isLoopback = (host: string) => /^(127\.0\.0\.1|localhost|\[::1\]|::1):\d+$/.test(host)

function hearRequests(ask: (host: string) => void): Disposable {
  const fetched = (message: unknown) => {
    const { origin } = (message as { request: { origin: string | URL } }).request
    ask(new URL(origin).host)
  }
  const asked = (message: unknown) => {
    const { request } = message as { request: { host: string; getHeader(name: string): unknown } }
    const named = request.getHeader('host')
    ask(typeof named === 'string' ? named : request.host)
  }
  subscribe('undici:request:create', fetched)
  subscribe('http.client.request.created', asked)
  return {
    [Symbol.dispose]() {
      unsubscribe('undici:request:create', fetched)
      unsubscribe('http.client.request.created', asked)
    },
  }
}

type Connect = (this: Socket, ...args: unknown[]) => Socket
type Target = { readonly host?: unknown; readonly port?: unknown; readonly path?: unknown }

/** Node has a diagnostics channel for sockets, which names no host. All clients of TCP and TLS end up in this method. */
function hearSockets(ask: (host: string) => void): Disposable {
  const { connect } = Socket.prototype as { connect: Connect }
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]) {
    const host = hostIn(args)
    if (host !== undefined) ask(host)
    return Reflect.apply(connect, this, args)
  } as Socket['connect']
  return { [Symbol.dispose]: () => void Object.assign(Socket.prototype, { connect }) }
}

/** `host:port` of the arguments of `connect`: options, or port and host. Undefined for a local socket. */
function hostIn([first, second]: readonly unknown[]): string | undefined {
  // `net.connect` passes its own normalized arguments as a list.
  if (Array.isArray(first)) return hostIn(first as unknown[])
  const options: Target = typeof first === 'object' && first !== null ? first : { port: first, host: second }
  const { host = 'localhost', port, path } = options
  if (typeof path === 'string' || !/^\d+$/.test(String(port))) return undefined
  return `${typeof host === 'string' ? host : 'localhost'}:${String(port)}`
}

/** Whether code of a folder is on the stack: its own, or that of packages which it calls. */
function stackOf(folder: string): () => boolean {
  const own = pathToFileURL(folder + sep).href
  return () => callers().some(line => line.includes(own) && !line.includes(`${own}node_modules`) && !line.includes(`${own}test/`))
}

/** Whether Node itself accesses on behalf of its caller: to start a program, it reads every variable. */
const isNode = () => /\(?node:/.test(callers().find(isForeign) ?? '')
const isForeign = (line: string) => !line.includes(import.meta.url)

/** The lines of the stack, innermost first. */
function callers(): string[] {
  const before = Error.stackTraceLimit
  Error.stackTraceLimit = 100
  const { stack = '' } = new Error('where')
  Error.stackTraceLimit = before
  return stack.split('\n').slice(1)
}
