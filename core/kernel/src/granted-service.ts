import { type Manifest, matchesPattern } from '../loading/manifest.ts'
import { itemNotPermitted } from './errors.ts'
import type { AnyService } from './token.ts'

type Method = (...args: unknown[]) => unknown

/** The plugin that uses a service. */
interface ServiceUser {
  readonly plugin: string
  readonly permissions: NonNullable<Manifest['permissions']>
  /** The plugin that added an item to a slot. */
  readonly ownerOf: (slot: string, item: string) => string | undefined
}

/** A service of which a plugin uses only its own items, by the token of the provider. */
export function grantedService(
  token: AnyService,
  service: Readonly<Record<string, Method>>,
  user: ServiceUser
): Record<string, Method> {
  const { items } = token
  const methods = Object.entries(token.methods).map(([method, kind]): [string, Method] => {
    const isOfItem = items?.methods.includes(method) === true
    const isAllowed = isOfItem ? (item: unknown) => canUseItem(token, item, user) : () => canUseWhole(token, user)
    const call: Method = (...args) => {
      if (isAllowed(args[0])) return service[method]!(...args)
      const error = itemNotPermitted(user.plugin, token, isOfItem ? args[0] : undefined)
      return kind === 'call' ? Promise.reject(error) : failing(error)
    }
    return [method, call]
  })
  return Object.fromEntries(methods)
}

const canUseWhole = ({ name }: AnyService, { permissions }: ServiceUser) =>
  (permissions.services ?? []).some(word => matchesPattern(word, name))

function canUseItem(token: AnyService, item: unknown, user: ServiceUser): boolean {
  const { items } = token
  if (typeof item !== 'string' || items === undefined) return false
  if ('slot' in items) return canUseWhole(token, user) || user.ownerOf(items.slot, item) === user.plugin
  return (user.permissions[items.permission] ?? []).includes(item)
}

/** A stream that fails when it is read. */
const failing = (error: Error): AsyncIterable<never> => ({
  [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error) }),
})
