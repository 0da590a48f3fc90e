import { type CallContext, codeOf, type Log, redactText } from '@svc/core'
import type { CacheStats, Json, Space, Store, StoreOp } from '@svc/core/contracts'
import { type Area, bytesOf, digest, type Entries } from '@svc/storage-kit/cache'

const ENTRIES = 'cache_entries'
const VALUES = 'cache_values'

/** An entry has a small record for its limits, and one with its value, under the same key. */
export const SPACE: Space = {
  name: 'cache',
  version: 1,
  collections: {
    [ENTRIES]: { indexes: { by_area: ['area', 'expires_at'], by_time: ['expires_at'] } },
    [VALUES]: {},
  },
}

interface EntryRecord {
  readonly area: string
  /** Unix milliseconds. */
  readonly expires_at: number
  readonly bytes: number
}
interface ValueRecord {
  readonly expires_at: number
  readonly text: string
}

const PAGE = 1_000
const PRUNE_MS = 5 * 60_000
/** An area is checked after this part of its limits was written by this process. */
const PART = 16

interface StoredOptions {
  readonly store: Store
  readonly log: Log
  readonly lasting: CallContext
}

/** Entries in the store, which all its processes share. A full cache drops the entries that were written first. */
export class StoredEntries implements Entries {
  readonly #options: StoredOptions
  /** What this process has written since it last checked the limits, by the id of the area. */
  readonly #written = new Map<string, { entries: number; bytes: number }>()

  constructor(options: StoredOptions) {
    this.#options = options
  }

  async get(area: Area, key: string, ctx: CallContext): Promise<string | undefined> {
    const found = await this.#orElse(this.#options.store.get(VALUES, keyOf(area, key), ctx), undefined, 'read')
    const value = found?.value as unknown as ValueRecord | undefined
    return value && value.expires_at > Date.now() ? value.text : undefined
  }

  put(area: Area, key: string, text: string, ctx: CallContext): Promise<boolean> {
    return this.#orElse(this.#put(area, key, text, ctx), false, 'write')
  }

  delete(area: Area, key: string, ctx: CallContext): Promise<void> {
    return this.#remove([keyOf(area, key)], ctx)
  }

  clear(area: Area, ctx: CallContext): Promise<void> {
    return this.#walk(area, () => false, ctx)
  }

  async stats(area: Area, ctx: CallContext): Promise<CacheStats> {
    const counted = async () => {
      const { scope } = await this.#options.store.probe(ctx)
      return { ...(await this.#sweep(area, ctx)), scope }
    }
    return this.#orElse(counted(), { entries: 0, bytes: 0, scope: 'machine' }, 'count')
  }

  /** Deletes expired entries of all caches, those of plugins that are gone included, from now on until `lasting.signal` aborts. */
  begin(everyMs = PRUNE_MS): void {
    const { log, lasting } = this.#options
    const round = () => void this.#prune().catch((err: unknown) => log.debug({ err }, 'failed to delete expired cache entries'))
    const timer = setInterval(round, everyMs).unref()
    lasting.signal.addEventListener('abort', () => clearInterval(timer), { once: true })
  }

  /** Does without a store that fails. An abort is no such failure. */
  async #orElse<T>(work: Promise<T>, otherwise: T, what: string): Promise<T> {
    try {
      return await work
    } catch (err) {
      if (!codeOf(err)?.startsWith('STORE_')) throw err
      this.#options.log.debug({ err }, `failed to ${what} entries of a cache in the store`)
      return otherwise
    }
  }

  async #put(area: Area, key: string, text: string, ctx: CallContext): Promise<boolean> {
    const bytes = bytesOf(key, text)
    const at = keyOf(area, key)
    // the store keeps no secret in clear
    if (bytes > area.maxBytes || redactText(text) !== text) {
      await this.#remove([at], ctx) // an earlier value would be wrong
      return false
    }
    const expires_at = Date.now() + area.ttlMs
    const entry = { area: area.id, expires_at, bytes } satisfies EntryRecord
    const value = { expires_at, text } satisfies ValueRecord
    const ops: StoreOp[] = [
      { op: 'put', collection: ENTRIES, key: at, value: entry as Json },
      { op: 'put', collection: VALUES, key: at, value: value as Json },
    ]
    await this.#options.store.batch(ops, {}, ctx)
    await this.#sweepIfDue(area, bytes, ctx)
    return true
  }

  async #sweepIfDue(area: Area, bytes: number, ctx: CallContext): Promise<void> {
    const sum = this.#written.get(area.id) ?? { entries: 0, bytes: 0 }
    sum.entries += 1
    sum.bytes += bytes
    const isDue = sum.entries * PART >= area.maxEntries || sum.bytes * PART >= area.maxBytes
    if (isDue) this.#written.delete(area.id)
    else this.#written.set(area.id, sum)
    if (isDue) await this.#sweep(area, ctx)
  }

  /** Counts the entries of a cache. Those that are over its limits, or have expired, are deleted. */
  async #sweep(area: Area, ctx: CallContext): Promise<{ entries: number; bytes: number }> {
    const sum = { entries: 0, bytes: 0 }
    let isFull = false
    const isKept = ({ expires_at, bytes }: EntryRecord) => {
      isFull ||= sum.entries + 1 > area.maxEntries || sum.bytes + bytes > area.maxBytes
      if (isFull || expires_at <= Date.now()) return false
      sum.entries += 1
      sum.bytes += bytes
      return true
    }
    await this.#walk(area, isKept, ctx)
    return sum
  }

  /** Walks over all entries of a cache, newest first, and deletes those for which `isKept` is false. */
  async #walk({ id }: Area, isKept: (entry: EntryRecord) => boolean, ctx: CallContext): Promise<void> {
    for (let cursor: string | undefined; ; ) {
      const query = { index: 'by_area', equals: [id], reverse: true, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }
      const page = await this.#options.store.range(ENTRIES, query, ctx)
      const dropped = page.records.filter(({ value }) => !isKept(value as unknown as EntryRecord))
      await this.#remove(keysOf(dropped), ctx)
      cursor = page.next
      if (cursor === undefined) return
    }
  }

  async #prune(): Promise<void> {
    const { store, lasting } = this.#options
    for (let hasMore = true; hasMore; ) {
      const page = await store.range(ENTRIES, { index: 'by_time', to: Date.now(), limit: PAGE }, lasting)
      await this.#remove(keysOf(page.records), lasting)
      hasMore = page.next !== undefined
    }
  }

  async #remove(keys: readonly string[], ctx: CallContext): Promise<void> {
    const ops = keys.flatMap((key): StoreOp[] => [ENTRIES, VALUES].map(collection => ({ op: 'delete', collection, key })))
    if (ops.length > 0) await this.#options.store.batch(ops, {}, ctx)
  }
}

const keyOf = ({ id }: Area, key: string): string => digest([id, key])

const keysOf = (records: readonly { readonly key: string }[]): string[] => records.map(({ key }) => key)
