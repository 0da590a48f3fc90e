import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type PackageInfo, matchesPattern } from '@svc/core'
import { COMMON_VARIABLES } from '@svc/runtime/isolation'
import { matchesHost } from '@svc/core/internal'

/** Tracks accesses of a package's code while other code runs. */
export interface Reach extends Disposable {
  /** Undeclared accesses, each once, as a sentence. */
  found(): readonly string[]
}

/**
 * Observes `process.env` and HTTP requests, for authors who forgot a declaration. It enforces nothing. Loopback servers whose
 * address is in `given`, the configuration and environment of the samples, belong to the test and need no declaration.
 */
export function watchReach({ folder, manifest: { permissions = {} } }: PackageInfo, given: string): Reach {
  const seen = new Set<string>()
  const isOwn = stackOf(folder)
  const real = process.env
  const note = (name: string) => {
    if (!COMMON_VARIABLES.test(name) && !declares(permissions.env, name) && isOwn() && !isNode())
      seen.add(`it reads the variable ${name}: add it to "permissions": { "env": ["${name}"] }`)
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
  const isMeant = (host: string) =>
    matchesHost(permissions.network ?? [], host) || (isLoopback(host) && given.includes(`//${host}`))
  const requests = hearRequests(isMeant, isOwn, seen)
  return {
    found: () => [...seen],
    [Symbol.dispose]() {
      process.env = real
      requests[Symbol.dispose]()
    },
  }
}

const declares = (declared: readonly string[] = [], name: string) => declared.some(item => matchesPattern(item, name))

const isLoopback = (host: string) => /^(127\.0\.0\.1|localhost|\[::1\]):\d+$/.test(host)

function hearRequests(isMeant: (host: string) => boolean, isOwn: () => boolean, seen: Set<string>): Disposable {
  const note = (host: string) => {
    if (!isMeant(host) && isOwn()) seen.add(`it asks ${host}: add it to "permissions": { "network": ["${host}"] }`)
  }
  const fetched = (message: unknown) => {
    const { origin } = (message as { request: { origin: string | URL } }).request
    note(new URL(origin).host)
  }
  const asked = (message: unknown) => {
    const { request } = message as { request: { host: string; getHeader(name: string): unknown } }
    const named = request.getHeader('host')
    note(typeof named === 'string' ? named : request.host)
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

/** Whether code of a folder, without packages in it, is on the stack. */
function stackOf(folder: string): () => boolean {
  const own = pathToFileURL(folder + sep).href
  return () => callers().some(line => line.includes(own) && !line.includes(`${own}node_modules`) && !line.includes(`${own}test/`))
}

/** Whether Node itself accesses on behalf of its caller: to start a program, it reads every variable. */
const isNode = () => /\(?node:/.test(callers().find(line => !line.includes(import.meta.url)) ?? '')

/** The lines of the stack, innermost first. */
function callers(): string[] {
  const before = Error.stackTraceLimit
  Error.stackTraceLimit = 100
  const { stack = '' } = new Error('where')
  Error.stackTraceLimit = before
  return stack.split('\n').slice(1)
}
