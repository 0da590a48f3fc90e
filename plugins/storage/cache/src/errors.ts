import { type SvcError, svcError } from '@svc/core'

const shown = (text: unknown) => (typeof text === 'string' ? JSON.stringify(text.slice(0, 64)) : `of type ${typeof text}`)

export const cacheUnknown = (name: unknown): SvcError =>
  svcError('CACHE_UNKNOWN', `there is no cache ${shown(name)}`, {
    hint: 'Use the name with which the plugin adds it to the slot cache_areas',
  })

export const areaInvalid = (name: string, reason: string): SvcError =>
  svcError('CACHE_INVALID', `the cache "${name}" is not valid: ${reason}`, {
    hint: 'Fix the plugin: set ttlMs, maxEntries and maxBytes to integers of at least 1',
  })

export const keyInvalid = (reason: string): SvcError =>
  svcError('CACHE_INVALID', `the key of a cache entry is not valid: ${reason}`, {
    hint: 'Use 1 to 1024 bytes of UTF-8 without U+0000. For a longer text, use its digest',
  })

export const valueInvalid = (cause?: unknown): SvcError =>
  svcError('CACHE_INVALID', 'the value of a cache entry is not JSON', { cause, hint: 'Store a plain JSON value' })

export const noStore = (plugin: string): SvcError =>
  svcError('MISSING_SERVICE', `cache.in is "store", but no plugin provides the store that ${plugin} needs`, {
    hint: 'Set cache.in to "memory", or add a store such as @svc/plugin-store-sqlite',
  })
