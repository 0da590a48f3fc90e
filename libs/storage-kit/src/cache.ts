import { createHash } from 'node:crypto'
import { type CallContext, isTree, type SlotView, type SvcError, svcError } from '@svc/core'
import type { Cache, CacheArea, CacheStats, Json } from '@svc/core/contracts'

/** Keeps texts of valid keys. */
export interface Entries {
  get(area: Area, key: string, ctx: CallContext): Promise<string | undefined>
  put(area: Area, key: string, text: string, ctx: CallContext): Promise<boolean>
  delete(area: Area, key: string, ctx: CallContext): Promise<void>
  clear(area: Area, ctx: CallContext): Promise<void>
  stats(area: Area, ctx: CallContext): Promise<CacheStats>
}

interface CacheOptions {
  readonly areas: SlotView<CacheArea>
  readonly entries: Entries
  /** Limits the bytes of each cache. */
  readonly maxBytes: number
}

/** The service over memory or a store. Values are kept as JSON, so that no caller changes the value of another. */
export function createCache({ areas, entries, maxBytes }: CacheOptions): Cache {
  const areaOf = createAreas(areas, maxBytes)
  const of = (name: string, key: string): [Area, string] => {
    const area = areaOf(name)
    checkKey(key)
    return [area, key]
  }
  return {
    async get(name, key, ctx) {
      const text = await entries.get(...of(name, key), ctx)
      return text === undefined ? undefined : (JSON.parse(text) as Json)
    },
    put: async (name, key, value, ctx) => entries.put(...of(name, key), written(value), ctx),
    delete: async (name, key, ctx) => entries.delete(...of(name, key), ctx),
    clear: async (name, ctx) => entries.clear(areaOf(name), ctx),
    stats: async (name, ctx) => entries.stats(areaOf(name), ctx),
  }
}

function written(value: Json): string {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (cause) {
    throw valueInvalid(cause)
  }
  if (text === undefined) throw valueInvalid()
  return text
}

/** A cache of a plugin, with valid limits. */
export interface Area {
  readonly name: string
  /** Differs for caches of the same name of different plugins. */
  readonly id: string
  /** The item of the slot: another one after the plugin has added it again. */
  readonly item: CacheArea
  readonly ttlMs: number
  readonly maxEntries: number
  readonly maxBytes: number
}

const NAME = /^[a-z][a-z0-9_-]{0,63}$/
const LONGEST_MS = 30 * 24 * 3_600_000
const MOST_KEY_BYTES = 1024
/** Rough size of an entry without its key and value. */
const ENTRY_BYTES = 200

/** Finds the caches of the slot by name. `mostBytes` limits each of them. */
export function createAreas(view: SlotView<CacheArea>, mostBytes: number): (name: string) => Area {
  const known = new WeakMap<CacheArea, Area>()
  return name => {
    const item = typeof name === 'string' && NAME.test(name) ? view.get(name) : undefined
    if (!item) throw cacheUnknown(name)
    const area = known.get(item) ?? areaOf(name, view.owner(name) ?? '', item, mostBytes)
    known.set(item, area)
    return area
  }
}

function areaOf(name: string, plugin: string, item: CacheArea, mostBytes: number): Area {
  const limit = (key: 'ttlMs' | 'maxEntries' | 'maxBytes', most: number): number => {
    const value: unknown = isTree(item) ? item[key] : undefined
    if (!Number.isSafeInteger(value) || (value as number) < 1) throw areaInvalid(name, `${key} must be an integer from 1`)
    return Math.min(value as number, most)
  }
  return {
    name,
    id: digest([plugin, name]),
    item,
    ttlMs: limit('ttlMs', LONGEST_MS),
    maxEntries: limit('maxEntries', Number.MAX_SAFE_INTEGER),
    maxBytes: limit('maxBytes', mostBytes),
  }
}

/** Identifies a list of texts by 64 characters. */
export const digest = (texts: readonly string[]): string => createHash('sha256').update(JSON.stringify(texts)).digest('hex')

/** Throws CACHE_INVALID. */
export function checkKey(key: unknown): asserts key is string {
  if (typeof key !== 'string' || key === '') throw keyInvalid('it must be a non-empty string')
  if (key.length > MOST_KEY_BYTES || Buffer.byteLength(key) > MOST_KEY_BYTES)
    throw keyInvalid(`it has more than ${MOST_KEY_BYTES} bytes of UTF-8`)
  if (!key.isWellFormed() || key.includes('\u0000')) throw keyInvalid('it must be well-formed Unicode without U+0000')
}

export const bytesOf = (key: string, text: string): number => Buffer.byteLength(key) + Buffer.byteLength(text) + ENTRY_BYTES

const shown = (text: unknown) => (typeof text === 'string' ? JSON.stringify(text.slice(0, 64)) : `of type ${typeof text}`)

const cacheUnknown = (name: unknown): SvcError =>
  svcError('CACHE_UNKNOWN', `there is no cache ${shown(name)}`, {
    hint: 'Use the name with which the plugin adds it to the slot cache_areas',
  })

const areaInvalid = (name: string, reason: string): SvcError =>
  svcError('CACHE_INVALID', `the cache "${name}" is not valid: ${reason}`, {
    hint: 'Fix the plugin: set ttlMs, maxEntries and maxBytes to integers of at least 1',
  })

const keyInvalid = (reason: string): SvcError =>
  svcError('CACHE_INVALID', `the key of a cache entry is not valid: ${reason}`, {
    hint: 'Use 1 to 1024 bytes of UTF-8 without U+0000. For a longer text, use its digest',
  })

const valueInvalid = (cause?: unknown): SvcError =>
  svcError('CACHE_INVALID', 'the value of a cache entry is not JSON', { cause, hint: 'Store a plain JSON value' })
