import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { PackageInfo } from '@svc/core'
import { COMMON_VARIABLES } from '@svc/runtime/isolation'
import { matchesHost, matchesPattern } from '@svc/core/internal'

/** Hears what the code of a package asks the world for while others run beside it. */
export interface Reach extends Disposable {
  /** What its manifest does not declare, each once, as a sentence. */
  found(): readonly string[]
}

/**
 * Watches `process.env` and requests over HTTP. A wall is something else: this is for an author who has forgotten a line. Servers on loopback whose address is
 * in `given`, the configuration and environment of the samples, are the test's own and need none.
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

const declares = (declared: readonly string[] = [], name: string) => declared.some(one => matchesPattern(one, name))

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

/** Tells whether the code of a folder, and no package in it, is on the stack. */
function stackOf(folder: string): () => boolean {
  const own = pathToFileURL(folder + sep).href
  return () => callers().some(line => line.includes(own) && !line.includes(`${own}node_modules`) && !line.includes(`${own}test/`))
}

/** Tells whether Node itself is who asks, on behalf of whoever called it: to start a program it reads every variable. */
const isNode = () => /\(?node:/.test(callers().find(line => !line.includes(import.meta.url)) ?? '')

/** The lines of the stack, the nearest first. */
function callers(): string[] {
  const before = Error.stackTraceLimit
  Error.stackTraceLimit = 100
  const { stack = '' } = new Error('where')
  Error.stackTraceLimit = before
  return stack.split('\n').slice(1)
}
