import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { PackageInfo } from '@svc/core'

/** Hears what the code of a package asks the world for while others run beside it. */
export interface Reach extends Disposable {
  /** What its manifest does not declare, each once, as a sentence. */
  found(): readonly string[]
}

type Permissions = NonNullable<PackageInfo['manifest']['permissions']>

/** Watches `process.env` and requests over HTTP. A wall is something else: this is for an author who has forgotten a line. */
export function watchReach({ folder, manifest: { permissions = {} } }: PackageInfo): Reach {
  const seen = new Set<string>()
  const isOwn = stackOf(folder)
  const real = process.env
  const note = (name: string) => {
    if (!declares(permissions.env, name) && isOwn())
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
  const requests = hearRequests(permissions, isOwn, seen)
  return {
    found: () => [...seen],
    [Symbol.dispose]() {
      process.env = real
      requests[Symbol.dispose]()
    },
  }
}

const declares = (declared: readonly string[] = [], name: string) => declared.includes(name) || declared.includes('*')

function hearRequests({ network = [] }: Permissions, isOwn: () => boolean, seen: Set<string>): Disposable {
  const note = (host: string) => {
    if (!isDeclared(network, host) && isOwn()) seen.add(`it asks ${host}: add it to "permissions": { "network": ["${host}"] }`)
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

/** `api.example.org`, `api.example.org:8443`, `*.example.org`, `*`. */
const isDeclared = (network: readonly string[], host: string) =>
  network.some(
    one =>
      one === '*' ||
      one === host ||
      one === host.replace(/:\d+$/, '') ||
      (one.startsWith('*.') && host.replace(/:\d+$/, '').endsWith(one.slice(1)))
  )

/** Tells whether the code of a folder, and no package in it, is on the stack. */
function stackOf(folder: string): () => boolean {
  const own = pathToFileURL(folder + sep).href
  return () => {
    const before = Error.stackTraceLimit
    Error.stackTraceLimit = 100
    const { stack = '' } = new Error('where')
    Error.stackTraceLimit = before
    return stack
      .split('\n')
      .some(line => line.includes(own) && !line.includes(`${own}node_modules`) && !line.includes(`${own}test/`))
  }
}
