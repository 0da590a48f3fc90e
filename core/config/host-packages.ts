import { registerHooks } from 'node:module'
import { codeOf } from '../src/svc-error.ts'

const HOST_PACKAGE = /^@svc\/(core|cli|space)(\/|$)/

/**
 * Runs an import during which `@svc/core` (and `@svc/space`, of which stores are made) is this very copy of it wherever none is installed: a plugin or a
 * configuration in a folder of its own needs nothing installed beside it.
 */
export async function withHostPackages<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (error) {
    if (!lacksHostPackage(error)) throw error
  }
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      if (!HOST_PACKAGE.test(specifier)) return next(specifier, context)
      try {
        return next(specifier, context)
      } catch (error) {
        if (codeOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error
        return next(specifier, { ...context, parentURL: import.meta.url })
      }
    },
  })
  try {
    return await load()
  } finally {
    hooks.deregister()
  }
}

const lacksHostPackage = (error: unknown) =>
  codeOf(error) === 'ERR_MODULE_NOT_FOUND' && /package '@svc\/(core|cli|space)'/.test((error as Error).message)
