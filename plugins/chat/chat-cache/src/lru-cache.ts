/** How much may lie on a shelf, and for how long. */
export interface LruLimits {
  readonly ttlMs: number
  readonly entries: number
  readonly bytes: number
}

/** Texts by key: the one that was read longest ago goes first. */
export interface LruCache {
  /** How many lie there that still count. */
  readonly size: number
  get(key: string): string | undefined
  /** Keeps it, unless it alone is more than the shelf takes. */
  put(key: string, text: string): void
}

interface CacheEntry {
  readonly text: string
  readonly bytes: number
  /** On the clock of the shelf. */
  readonly until: number
}

/** What an entry takes besides its text, about. */
const ENTRY_BYTES = 200

/** `now` returns milliseconds of a monotonic clock. */
export function createLruCache(
  { ttlMs, entries, bytes: most }: LruLimits,
  now: () => number = () => performance.now()
): LruCache {
  const kept = new Map<string, CacheEntry>()
  let bytes = 0
  const drop = (key: string, one: CacheEntry) => {
    kept.delete(key)
    bytes -= one.bytes
  }
  const take = (key: string) => {
    const one = kept.get(key)
    if (one) drop(key, one)
    return one
  }
  const add = (key: string, one: CacheEntry) => {
    kept.set(key, one)
    bytes += one.bytes
  }
  const makeRoom = () => {
    for (const [key, one] of kept) {
      if (kept.size <= entries && bytes <= most) return
      drop(key, one)
    }
  }
  return {
    get size() {
      for (const [key, one] of kept) if (one.until <= now()) drop(key, one)
      return kept.size
    },
    get(key) {
      const one = take(key)
      if (!one || one.until <= now()) return undefined
      add(key, one)
      return one.text
    },
    put(key, text) {
      take(key)
      const size = Buffer.byteLength(text) + ENTRY_BYTES
      if (size > most) return
      add(key, { text, bytes: size, until: now() + ttlMs })
      makeRoom()
    },
  }
}
