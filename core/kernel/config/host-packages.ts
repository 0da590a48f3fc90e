import { findPackageJSON, registerHooks, type ResolveHookSync } from 'node:module'
import { dirname } from 'node:path'
import { codeOf } from '../src/errors.ts'

/** A package that svc gives to plugins. */
export interface HostPackage {
  readonly name: string
  /** What a plugin imports it for. */
  readonly purpose: string
  /** The code that imports it. Tests: a development dependency of the plugin. Commands: visible only to them in the sandbox. */
  readonly only?: 'tests' | 'commands'
}

/**
 * The packages that svc gives to plugins. A plugin declares those that it imports in `peerDependencies`; then svc resolves them
 * to its own copies, so that both sides have the same classes. Other packages of svc can change without notice.
 */
export const HOST_PACKAGES: readonly HostPackage[] = [
  { name: '@svc/core', purpose: 'definePlugin, schemas, errors; the contracts in @svc/core/contracts' },
  { name: '@svc/cli', purpose: 'command classes (@svc/cli/command)', only: 'commands' },
  { name: '@svc/plugin-kit', purpose: 'typed tools, semaphores, untrusted schemas' },
  { name: '@svc/provider-http', purpose: 'model providers over HTTP: streams, failures, keys, model lists' },
  { name: '@svc/storage-kit', purpose: 'helpers for plugins that use or provide the store' },
  { name: '@svc/testing', purpose: 'test hosts and kits', only: 'tests' },
]

/** The host package that an import names: `@svc/core/contracts` belongs to `@svc/core`. */
export const hostPackageOf = (specifier: string): HostPackage | undefined =>
  specifier.startsWith('@svc/')
    ? HOST_PACKAGES.find(({ name }) => specifier === name || specifier.startsWith(`${name}/`))
    : undefined

/** The folder of this svc's copy of a package. Undefined if it is not installed next to the core. */
export const hostPackageFolder = (name: string): string | undefined => folderFrom(name, import.meta.url)

/** The package that Node finds from a place. */
function folderFrom(name: string, place: string): string | undefined {
  try {
    const file = findPackageJSON(name, place)
    return file === undefined ? undefined : dirname(file)
  } catch {
    return undefined
  }
}

/** The place of a plugin's module, as a file URL. Configuration has none: it rarely imports more than types. */
export interface ImportPlace {
  readonly place?: string
  /** The module has command classes. */
  readonly isOfCommands?: boolean
}

/**
 * Runs an import. Host packages that are not installed at its place resolve to those of this svc, also in imports that the
 * module makes later. So a plugin or a configuration in its own folder needs no installed packages.
 */
export async function withHostPackages<T>(load: () => Promise<T>, at: ImportPlace = {}): Promise<T> {
  if (isProviding) return load()
  if (lacksHostPackage(at)) return provided(load)
  try {
    return await load()
  } catch (error) {
    if (!isAboutHostPackage(error)) throw error
    return provided(load)
  }
}

let isProviding = false

/** One hook for the life of the process, because a plugin can import a host package at any time. It slows down imports. */
function provided<T>(load: () => Promise<T>): Promise<T> {
  if (!isProviding) registerHooks({ resolve: resolveHere })
  isProviding = true
  return load()
}

/** Places that have all host packages: a start asks for the same ones many times. */
const complete = new Set<string>()

function lacksHostPackage({ place, isOfCommands = false }: ImportPlace): boolean {
  if (place === undefined) return false
  const key = `${new URL('.', place).href} ${isOfCommands}`
  if (complete.has(key)) return false
  const needed = HOST_PACKAGES.filter(({ only }) => only === undefined || (only === 'commands' && isOfCommands))
  const isComplete = needed.every(({ name }) => folderFrom(name, place) !== undefined)
  if (isComplete) complete.add(key)
  return !isComplete
}

const resolveHere: ResolveHookSync = (specifier, context, next) => {
  if (hostPackageOf(specifier) === undefined) return next(specifier, context)
  try {
    return next(specifier, context)
  } catch (error) {
    if (codeOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error
    return next(specifier, { ...context, parentURL: import.meta.url })
  }
}

/** Node names the package in its message only. */
const isAboutHostPackage = (error: unknown) =>
  codeOf(error) === 'ERR_MODULE_NOT_FOUND' &&
  hostPackageOf(/package '([^']+)'/.exec((error as Error).message)?.[1] ?? '') !== undefined
