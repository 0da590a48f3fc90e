import { defineService, defineSlot, type CallContext } from '@svc/core'
import type { Json } from './store.ts'

/**
 * A cache of a plugin. All members are data. Names are `[a-z][a-z0-9_-]*`, at most 64 characters; begin them with the name of your
 * plugin. The operator can set lower limits.
 */
export interface CacheArea {
  readonly description: string
  /** Lifetime of an entry in milliseconds: 1 to 30 days. */
  readonly ttlMs: number
  /** Maximum number of entries, at least 1. When it is exceeded, entries that were not used or written for long are dropped. */
  readonly maxEntries: number
  /** Maximum bytes of all entries (JSON and key as UTF-8, and a fixed amount for each), at least 1. */
  readonly maxBytes: number
}

/** Caches by name. A plugin uses only those that it has added itself. */
export const CacheAreas = defineSlot<CacheArea>('cache_areas', { api: 1, methods: {} })

/** State of a cache. */
export interface CacheStats {
  /** Number of entries that have not expired. */
  readonly entries: number
  readonly bytes: number
  /** What shares its entries, as `StoreProbe.scope`. */
  readonly scope: 'process' | 'machine' | 'cluster'
}

/**
 * Keeps values for a while that can be computed again. It is never the truth: every entry can be missing at any time, also one
 * that was just written, and entries that other processes share can be old for a moment. So losing the cache costs time, never
 * data. A cache that cannot reach its entries finds and keeps nothing. The first argument is the name in the slot `CacheAreas`. Keys
 * are 1 to 1024 bytes of UTF-8, well-formed and without U+0000. Errors: CACHE_UNKNOWN (the name), CACHE_INVALID (the key, the
 * value, or the limits of the area), NOT_PERMITTED (a cache of another plugin).
 */
export interface Cache {
  /** A copy of the value, or undefined. */
  get(area: string, key: string, ctx: CallContext): Promise<Json | undefined>
  /**
   * Keeps a value for `ttlMs` from now on, in place of an earlier one. Resolves to false if it was not kept: it alone exceeds
   * the limits (then an earlier value is gone too), or the cache cannot be reached.
   */
  put(area: string, key: string, value: Json, ctx: CallContext): Promise<boolean>
  /** Throws STORE_UNAVAILABLE or STORE_UNSURE if the entry could still be there. */
  delete(area: string, key: string, ctx: CallContext): Promise<void>
  /** Deletes all entries. Throws as `delete`. */
  clear(area: string, ctx: CallContext): Promise<void>
  stats(area: string, ctx: CallContext): Promise<CacheStats>
}

export const Cache = defineService<Cache>('cache', {
  api: 1,
  methods: { get: 'call', put: 'call', delete: 'call', clear: 'call', stats: 'call' },
  items: { slot: 'cache_areas', methods: ['get', 'put', 'delete', 'clear', 'stats'] },
})
