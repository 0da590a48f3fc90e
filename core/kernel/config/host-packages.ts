import { registerHooks, type ResolveHookSync } from 'node:module'
import { codeOf } from '../src/svc-error.ts'

const HOST_PACKAGE = /^@svc\/(core|cli|storage-kit|testing)(\/|$)/

/**
 * Runs an import during which `@svc/core` (and `@svc/storage-kit`, of which stores are made) is this very copy of it wherever none is installed: a plugin or a
 * configuration in a folder of its own needs nothing installed beside it.
 */
export async function withHostPackages<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (error) {
    if (!lacksHostPackage(error)) throw error
  }
  hooks ??= registerHooks({ resolve: resolveHere })
  loading++
  try {
    return await load()
  } finally {
    if (--loading === 0) {
      hooks?.deregister()
      hooks = undefined
    }
  }
}

// one hook for all who load at once: a hundred of them would ask each other
let hooks: ReturnType<typeof registerHooks> | undefined
let loading = 0

const resolveHere: ResolveHookSync = (specifier, context, next) => {
  if (!HOST_PACKAGE.test(specifier)) return next(specifier, context)
  try {
    return next(specifier, context)
  } catch (error) {
    if (codeOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error
    return next(specifier, { ...context, parentURL: import.meta.url })
  }
}

const lacksHostPackage = (error: unknown) =>
  codeOf(error) === 'ERR_MODULE_NOT_FOUND' && /package '@svc\/(core|cli|storage-kit|testing)'/.test((error as Error).message)
