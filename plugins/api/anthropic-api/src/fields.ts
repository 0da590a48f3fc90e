import { type Fields, type Losses, fieldInvalid, objectAt, textAt } from '@svc/api-types'
import type { CacheHint, Json } from '@svc/core/contracts'

/** A field with a value. `null` counts as absent. */
export const given = (fields: Fields, name: string): Json | undefined => fields[name] ?? undefined

/** The `type` of a block or another object. */
export const kindAt = ({ type }: Fields, path: string): string => textAt(type, `${path}.type`)

/** A number from 0 to 1. */
export function shareAt(value: Json | undefined, path: string): number {
  if (typeof value !== 'number' || !(value >= 0 && value <= 1)) throw fieldInvalid(path, 'must be a number from 0 to 1')
  return value
}

/** The hint of a `cache_control`, as a property to spread. */
export function cacheHintOf(fields: Fields, path: string, losses: Losses): { readonly cacheHint?: CacheHint } {
  const value = given(fields, 'cache_control')
  if (value === undefined) return {}
  const { type, ttl } = objectAt(value, `${path}.cache_control`)
  if (type !== 'ephemeral') losses.refuse(`${path}.cache_control.type`, 'must be "ephemeral" for this model')
  if (ttl === undefined || ttl === null) return { cacheHint: {} }
  if (ttl === '5m' || ttl === '1h') return { cacheHint: { ttl } }
  losses.refuse(`${path}.cache_control.ttl`, 'must be "5m" or "1h" for this model')
  return {}
}
