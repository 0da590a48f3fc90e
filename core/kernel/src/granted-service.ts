import { type Manifest, matchesPattern } from '../loading/manifest.ts'
import { itemNotPermitted } from './errors.ts'
import type { AnyService } from './token.ts'

type Method = (...args: unknown[]) => unknown

/**
 * A service of which a plugin uses only the items that its permissions name, by the token of the provider. It calls the other
 * methods only with the permission for the whole service.
 */
export function grantedService(
  token: AnyService,
  service: Readonly<Record<string, Method>>,
  plugin: string,
  permissions: NonNullable<Manifest['permissions']>
): Record<string, Method> {
  const { items } = token
  const isWhole = (permissions.services ?? []).some(word => matchesPattern(word, token.name))
  const names: readonly string[] = (items && permissions[items.permission]) ?? []
  const methods = Object.entries(token.methods).map(([method, kind]): [string, Method] => {
    const isOfItem = items?.methods.includes(method) === true
    const isAllowed = (item: unknown) => (isOfItem ? typeof item === 'string' && names.includes(item) : isWhole)
    const call: Method = (...args) => {
      if (isAllowed(args[0])) return service[method]!(...args)
      const error = itemNotPermitted(plugin, token, isOfItem ? args[0] : undefined)
      return kind === 'call' ? Promise.reject(error) : failing(error)
    }
    return [method, call]
  })
  return Object.fromEntries(methods)
}

/** A stream that fails when it is read. */
const failing = (error: Error): AsyncIterable<never> => ({
  [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error) }),
})
