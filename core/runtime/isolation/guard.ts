import childProcess from 'node:child_process'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { isAbsolute, resolve, sep } from 'node:path'
import process from 'node:process'
import { codeOf, matchesPattern } from '@svc/core'
import type { RefusalKind } from '@svc/core/contracts'
import { type ReportRefusal, reword, undeclared } from './errors.ts'

/** Settings of the guard, from the variable `SVC_ISOLATED`. */
interface GuardSettings {
  /** Names of declared variables, with `*`. */
  readonly env: readonly string[]
  /** Visible folders. */
  readonly visible: readonly string[]
  /** The socket of the host's proxy, the loopback port for HTTP libraries, and the declared hosts. */
  readonly proxy?: { readonly socket: string; readonly port: number; readonly declared: readonly string[] }
}

const MOST = 500
const VARIABLE = 'SVC_ISOLATED'

/** Receives what the guard sees. */
export interface GuardReports {
  readonly refused: ReportRefusal
  /** A dependency read a variable that is not declared: most look at many that they do not need. */
  readonly looked: (variable: string, by: string) => void
  /** Describes a host that the manifest does not declare, and the line to add. */
  readonly describe: (host: string) => string
}

/** The message of such a look in the log. */
export const LOOKED_AT = 'a dependency read a variable that the manifest does not declare'

/**
 * Observes what the plugin accesses and reports denied accesses. It enforces nothing; the sandbox does. `module`: the URL of the
 * plugin's module.
 */
export async function openGuard(module: string, { refused: report, looked, describe }: GuardReports): Promise<void> {
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
    guardFetch(describe)
    const { openTunnels } = await import('./tunnels.ts')
    await openTunnels(proxy, refuse, describe)
  }
  guardCalls(refuse, visible)
  guardVariables(env, by => packageOfCaller(module, by), { refused: refuse, looked })
}

const DENIED = 'ERR_ACCESS_DENIED'
type Call = (...args: unknown[]) => unknown
interface Failure {
  readonly code?: string
  readonly permission?: string
  readonly resource?: string
  readonly path?: unknown
}

/** Paths that every sandbox contains. A missing file below them is not hidden. */
const COMMON = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/proc', '/dev', '/tmp']
const WRITES = /^(write|append|mkdir|rm|unlink|rename|copy|cp|ch|lch|truncate|symlink|link|utimes|lutimes|mkdtemp)/
const PERMISSIONS: Readonly<Record<string, RefusalKind>> = { FileSystemRead: 'read', FileSystemWrite: 'write' }

/** Reports accesses that Node's modules deny: files and other programs. All of them go through the functions of these modules. */
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
    // Names of classes (fs.Stats) start with a capital letter, those of private helpers with an underscore.
    if (typeof call !== 'function' || !/^[a-z]/.test(name)) continue
    const answer = watched(call as Call, error => see(name, error))
    // Its documentation says that it does not throw, but it does under the permission model.
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

/** Wraps a function to observe failures, whether it throws, rejects, or calls back. */
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
  if (code !== 'ENOENT' || !isAbsolute(path) || visible.some(item => isWithin(resolve(path), item))) return undefined
  return [WRITES.test(name) ? 'write' : 'read', resolve(path)]
}

const fullPath = (permission = '', resource = '') =>
  permission.startsWith('FileSystem') ? resolve(resource) : resource || permission
const isWithin = (path: string, folder: string) =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

/** Variables that Node and common libraries read but do not need. Plugins do not declare them. */
export const COMMON_VARIABLES =
  /^(NODE|NPM|npm|LC|XDG|UNDICI|WS|READABLE_STREAM|JEST|MOCHA|VITEST|WATCH)(_|$)|^(DEBUG|TERM|COLORTERM|CI|HOME|PATH|PWD|SHELL|USER|LOGNAME|LANG|LANGUAGE|TZ|TMPDIR|TMP|TEMP|EDITOR|BABEL_ENV|SYSTEMROOT|APPDATA|LOCALAPPDATA|SVC_EGRESS)$|COLOR|_PROXY$|_proxy$|^no_proxy$/

/** Stacks that are read for one variable: a plugin can read it any number of times. */
const MOST_READS = 20

/** Reports each variable that is read but not declared, and so is not set. */
function guardVariables(
  declared: readonly string[],
  readerOf: (stack: string) => string | undefined,
  { refused, looked }: Pick<GuardReports, 'refused' | 'looked'>
): void {
  const reads = new Map<string, { count: number; readonly by: Set<string> }>()
  const look = (all: NodeJS.ProcessEnv, name: string | symbol) => {
    if (typeof name !== 'string' || name in all || COMMON_VARIABLES.test(name)) return
    if (declared.some(word => matchesPattern(word, name))) return
    const seen = reads.get(name) ?? { count: 0, by: new Set() }
    if (seen.count++ >= MOST_READS || reads.size >= MOST) return
    reads.set(name, seen)
    const by = readerOf(stackHere())
    if (by === undefined) refused('env', name)
    else if (!seen.by.has(by)) looked(name, by)
    seen.by.add(by ?? '')
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

/** The stack of the read, without this file. */
const stackHere = () =>
  (new Error('read').stack ?? '')
    .split('\n')
    .filter(line => !line.includes(import.meta.url))
    .join('\n')

const FRAME_PATH = /(?:file:\/\/|[( ])(\/[^\n:()]+):\d+:\d+\)?$/m

/**
 * The package whose code is innermost on a stack; undefined for the code of the plugin itself, whose module this is. A package
 * is a dependency wherever it is installed: in the folder of the plugin, or beside it.
 */
export function packageOfCaller(module: string, stack: string): string | undefined {
  const [, path = ''] = FRAME_PATH.exec(stack) ?? []
  const [own, at] = [packageIn(decodeURIComponent(new URL(module).pathname)), packageIn(path)]
  return at === own ? undefined : at
}

const packageIn = (path: string) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]
