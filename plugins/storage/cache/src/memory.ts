import type { CacheStats } from '@svc/core/contracts'
import { type Area, bytesOf, type Entries } from '@svc/storage-kit/cache'
import { LRUCache } from 'lru-cache'

type Texts = LRUCache<string, string>

interface MemoryOptions {
  /** Maximum bytes of all caches. */
  readonly maxBytes: number
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number
}

/** Entries in the memory of this process. A full cache drops the entries that were not read for longest. */
export class MemoryEntries implements Entries {
  readonly #maxBytes: number
  readonly #now: () => number
  readonly #caches = new Map<string, { readonly item: object; readonly texts: Texts }>()
  #bytes = 0

  constructor({ maxBytes, now = () => performance.now() }: MemoryOptions) {
    this.#maxBytes = maxBytes
    this.#now = now
  }

  async get(area: Area, key: string): Promise<string | undefined> {
    const texts = this.#textsOf(area)
    return this.#counting(texts, () => texts.get(key))
  }

  async put(area: Area, key: string, text: string): Promise<boolean> {
    const texts = this.#textsOf(area)
    this.#counting(texts, () => {
      texts.set(key, text)
      // not `max`, which allocates so many entries at once
      if (texts.size > area.maxEntries) texts.pop()
    })
    this.#shrink()
    return texts.has(key)
  }

  async delete(area: Area, key: string): Promise<void> {
    const texts = this.#textsOf(area)
    this.#counting(texts, () => texts.delete(key))
  }

  async clear({ name }: Area): Promise<void> {
    this.#drop(name)
  }

  async stats(area: Area): Promise<CacheStats> {
    const texts = this.#textsOf(area)
    this.#counting(texts, () => texts.purgeStale())
    return { entries: texts.size, bytes: texts.calculatedSize, scope: 'process' }
  }

  /** Drops caches that do not exist any more. */
  forget(names: readonly string[]): void {
    for (const name of names) this.#drop(name)
  }

  #textsOf({ name, item, ttlMs, maxBytes: maxSize }: Area): Texts {
    const found = this.#caches.get(name)
    if (found?.item === item) return found.texts
    this.#drop(name)
    const sizeCalculation = (text: string, key: string) => bytesOf(key, text)
    const texts: Texts = new LRUCache({ maxSize, sizeCalculation, ttl: ttlMs, ttlResolution: 0, perf: { now: this.#now } })
    this.#caches.set(name, { item, texts })
    return texts
  }

  #drop(name: string): void {
    this.#bytes -= this.#caches.get(name)?.texts.calculatedSize ?? 0
    this.#caches.delete(name)
  }

  /** Does work that changes the size of a cache. */
  #counting<T>(texts: Texts, work: () => T): T {
    const before = texts.calculatedSize
    const result = work()
    this.#bytes += texts.calculatedSize - before
    return result
  }

  /** Takes room from the largest caches. */
  #shrink(): void {
    while (this.#bytes > this.#maxBytes) {
      let largest: Texts | undefined
      for (const { texts } of this.#caches.values()) if (texts.calculatedSize > (largest?.calculatedSize ?? 0)) largest = texts
      if (!largest) return
      const shrinking = largest
      this.#counting(shrinking, () => shrinking.pop())
    }
  }
}
