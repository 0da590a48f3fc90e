import type { CacheHint, Json } from '@svc/core/contracts'
import { invalid } from './errors.ts'

/** An object of the request. */
export type Fields = { readonly [name: string]: Json | undefined }

export const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * What the translation of a request cannot carry. A model server that speaks this API gets the request as it is, so both count only
 * for other models.
 */
export class Losses {
  /** Fields and kinds of content that are left out. */
  readonly dropped = new Set<string>()
  /** The first field that can be neither carried nor left out, or whose value only such a server can know. */
  refusal: Error | undefined = undefined

  drop(name: string): void {
    if (this.dropped.size < MOST_DROPPED) this.dropped.add(name)
  }

  refuse(field: string, reason: string): void {
    this.refusal ??= invalid(field, reason)
    this.drop(field)
  }

  /** Drops the fields of an object that are not known, in the name of their place. */
  dropUnknown(fields: Fields, known: ReadonlySet<string>, place: string): void {
    for (const name in fields) if (!known.has(name) && fields[name] !== undefined) this.drop(`${place}.${name}`)
  }
}

/** Names beyond are not listed. */
const MOST_DROPPED = 100

/** A field with a value. `null` counts as absent. */
export const given = (fields: Fields, name: string): Json | undefined => fields[name] ?? undefined

export function objectAt(value: Json | undefined, path: string): Fields {
  if (!isFields(value)) throw invalid(path, 'must be an object')
  return value
}

export function listAt(value: Json | undefined, path: string): readonly Json[] {
  if (!Array.isArray(value)) throw invalid(path, 'must be a list')
  return value
}

export function textAt(value: Json | undefined, path: string): string {
  if (typeof value !== 'string') throw invalid(path, 'must be a string')
  return value
}

/** The `type` of a block or another object. */
export const kindAt = ({ type }: Fields, path: string): string => textAt(type, `${path}.type`)

/** A string that is not empty and not longer than this. */
export function nameAt(value: Json | undefined, path: string, longest = 256): string {
  const name = textAt(value, path)
  if (name === '' || name.length > longest) throw invalid(path, `must have 1 to ${longest} characters`)
  return name
}

export function integerAt(value: Json | undefined, path: string, least: number): number {
  if (!Number.isSafeInteger(value) || Number(value) < least) throw invalid(path, `must be an integer of at least ${least}`)
  return Number(value)
}

/** A number from 0 to 1. */
export function shareAt(value: Json | undefined, path: string): number {
  if (typeof value !== 'number' || !(value >= 0 && value <= 1)) throw invalid(path, 'must be a number from 0 to 1')
  return value
}

export function flagAt(value: Json | undefined, path: string): boolean {
  if (typeof value !== 'boolean') throw invalid(path, 'must be true or false')
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
