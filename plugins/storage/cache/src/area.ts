import { createHash } from 'node:crypto'
import { isTree, type SlotView } from '@svc/core'
import type { CacheArea } from '@svc/core/contracts'
import { areaInvalid, cacheUnknown, keyInvalid } from './errors.ts'

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
