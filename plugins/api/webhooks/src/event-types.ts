import { nearest } from '@svc/core'
import * as contracts from '@svc/core/contracts'

const isTopic = (value: unknown): value is { readonly type: string } =>
  typeof value === 'object' && value !== null && 'category' in value && 'type' in value && typeof value.type === 'string'

/** The types that the contracts of svc name. Changes (`AUDIT`) and plugins have further ones. */
const KNOWN: ReadonlySet<string> = new Set(
  Object.values<unknown>(contracts)
    .filter(isTopic)
    .map(({ type }) => type)
)

const PREFIX = 'svc.'

/**
 * The known type that a filter probably means: it differs by a typing error in each word. Undefined if a type has this name, or none
 * is near: a plugin can publish it.
 */
export function meantType(given: string): string | undefined {
  const type = given.startsWith(PREFIX) ? given.slice(PREFIX.length) : given
  if (type.endsWith('*') || KNOWN.has(type)) return undefined
  const words = type.split('_')
  return [...KNOWN].find(known => {
    const others = known.split('_')
    return others.length === words.length && others.every((other, at) => nearest(words[at] ?? '', [other]) === other)
  })
}
