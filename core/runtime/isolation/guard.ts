import childProcess from 'node:child_process'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { isAbsolute, resolve, sep } from 'node:path'
import process from 'node:process'
import { codeOf } from '@svc/core'
import type { RefusalKind } from '@svc/core/contracts'
import { matchesPattern } from '@svc/core/internal'
import { reword, undeclared } from './errors.ts'

/** What the policy lets a guarded process know, in the variable `SVC_ISOLATED`. */
interface GuardSettings {
  /** Names of variables that it declares, with `*`. */
  readonly env: readonly string[]
  /** Folders that it may look at. */
  readonly visible: readonly string[]
  /** The socket that leads to the host's proxy, the port of the loopback at which HTTP libraries look for one, and the hosts that it connects with. */
  readonly proxy?: { readonly socket: string; readonly port: number; readonly declared: readonly string[] }
}

/** Called for each thing that was reached for in vain: once for each kind and name. */
export type ReportRefusal = (kind: RefusalKind, what: string) => void

const MOST = 500
const VARIABLE = 'SVC_ISOLATED'

/** Watches what the plugin reaches for. It is no wall, it tells: what is refused is refused by the sandbox. */
export async function openGuard(report: ReportRefusal): Promise<void> {
  const written = process.env[VARIABLE]
  delete process.env[VARIABLE]
  if (written === undefined) return
  const { env, visible, proxy } = JSON.parse(written) as GuardSettings
  const reported = new Set<string>()
  const refuse: ReportRefusal = (kind, what) => {
    const key = `${kind} ${what}`
    if (reported.has(key) || reported.size >= MOST) return
    reported.add(key)
    report(kind, what)
  }
  if (proxy) {
    const { guardFetch, openProxyPort } = await import('./guard-network.ts')
    await openProxyPort(proxy)
    guardFetch()
    const { openTunnels } = await import('./tunnels.ts')
    await openTunnels(proxy, refuse)
  }
  guardCalls(refuse, visible)
  guardVariables(refuse, env)
}

const DENIED = 'ERR_ACCESS_DENIED'
type Call = (...args: unknown[]) => unknown
interface Failure {
  readonly code?: string
  readonly permission?: string
  readonly resource?: string
  readonly path?: unknown
}

/** What is in every sandbox, and what is not there is not hidden. */
const COMMON = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/proc', '/dev', '/tmp']
const WRITES = /^(write|append|mkdir|rm|unlink|rename|copy|cp|ch|lch|truncate|symlink|link|utimes|lutimes|mkdtemp)/
const PERMISSIONS: Readonly<Record<string, RefusalKind>> = { FileSystemRead: 'read', FileSystemWrite: 'write' }

/** Tells of what Node's own modules refuse: files that may not be read or written, and other programs. All of it goes through the functions of these two. */
function guardCalls(refuse: ReportRefusal, visible: readonly string[]): void {
  const see = (name: string, error: unknown) => {
    const found = refusalIn(name, Object(error) as Failure, [...COMMON, ...visible])
    if (!found) return
    refuse(...found)
    if (codeOf(error) === DENIED) reword(error as Error, undeclared(...found))
  }
  for (const module of [fs, fs.promises, childProcess] as object[]) wrapAll(module as Record<string, unknown>, see)
  syncBuiltinESMExports()
}

function wrapAll(module: Record<string, unknown>, see: (name: string, error: unknown) => void): void {
  for (const [name, call] of Object.entries(module)) {
    // classes (fs.Stats) begin with a capital, and private helpers with an underline
    if (typeof call !== 'function' || !/^[a-z]/.test(name)) continue
    const answer = watched(call as Call, error => see(name, error))
    // its manual says that it does not throw; under the permission model it does
    const wrapped = name === 'existsSync' ? orFalse(answer) : answer
    for (const key of Reflect.ownKeys(call)) {
      const property = Reflect.getOwnPropertyDescriptor(call, key)!
      if (key !== 'length' && key !== 'name' && key !== 'prototype') Object.defineProperty(wrapped, key, property)
    }
    module[name] = wrapped
  }
}

function orFalse(call: Call): Call {
  return function (this: unknown, ...args) {
    try {
      return Reflect.apply(call, this, args)
    } catch (error) {
      if (codeOf(error) !== DENIED) throw error
      return false
    }
  }
}

/** A function whose failures are seen, whether it throws, rejects, or calls back. */
function watched(call: Call, see: (error: unknown) => void): Call {
  return function (this: unknown, ...args) {
    const back = args.at(-1)
    if (typeof back === 'function') args[args.length - 1] = seenFirst(back as Call, see)
    try {
      const answer = Reflect.apply(call, this, args)
      if (answer instanceof Promise) answer.catch(see)
      return answer
    } catch (error) {
      see(error)
      throw error
    }
  }
}

function seenFirst(back: Call, see: (error: unknown) => void): Call {
  return function (this: unknown, ...args) {
    if (args[0] instanceof Error) see(args[0])
    return Reflect.apply(back, this, args)
  }
}

function refusalIn(name: string, error: Failure, visible: readonly string[]): [RefusalKind, string] | undefined {
  const { code, permission, resource, path } = error
  if (code === DENIED) return [PERMISSIONS[permission ?? ''] ?? 'process', fullPath(permission, resource)]
  if (typeof path !== 'string') return undefined
  if (code === 'EROFS') return ['write', resolve(path)]
  if (code === 'EACCES' || code === 'EPERM') return [WRITES.test(name) ? 'write' : 'read', resolve(path)]
  if (code !== 'ENOENT' || !isAbsolute(path) || visible.some(one => isWithin(resolve(path), one))) return undefined
  return [WRITES.test(name) ? 'write' : 'read', resolve(path)]
}

const fullPath = (permission = '', resource = '') =>
  permission.startsWith('FileSystem') ? resolve(resource) : resource || permission
const isWithin = (path: string, folder: string) =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

/** What Node and common libraries look for everywhere, and do without: nobody declares it. */
export const COMMON_VARIABLES =
  /^(NODE|NPM|npm|LC|XDG|UNDICI|WS|READABLE_STREAM|JEST|MOCHA|VITEST|WATCH)(_|$)|^(DEBUG|TERM|COLORTERM|CI|HOME|PATH|PWD|SHELL|USER|LOGNAME|LANG|LANGUAGE|TZ|TMPDIR|TMP|TEMP|EDITOR|BABEL_ENV|SYSTEMROOT|APPDATA|LOCALAPPDATA|SVC_EGRESS)$|COLOR|_PROXY$|_proxy$|^no_proxy$/

/** Tells of each variable that is read, not declared, and so not there. */
function guardVariables(refuse: ReportRefusal, declared: readonly string[]): void {
  const look = (all: NodeJS.ProcessEnv, name: string | symbol) => {
    if (typeof name !== 'string' || name in all || COMMON_VARIABLES.test(name)) return
    if (!declared.some(word => matchesPattern(word, name))) refuse('env', name)
  }
  process.env = new Proxy(process.env, {
    get(all, name) {
      look(all, name)
      return Reflect.get(all, name)
    },
    has(all, name) {
      look(all, name)
      return Reflect.has(all, name)
    },
    getOwnPropertyDescriptor(all, name) {
      look(all, name)
      return Reflect.getOwnPropertyDescriptor(all, name)
    },
  })
}
