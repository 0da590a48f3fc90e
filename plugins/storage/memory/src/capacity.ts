import { storeTooLarge } from '@svc/storage-kit'

/** Limits of the store. */
export interface CapacityLimits {
  /** Records and log entries together. */
  readonly maxRecords: number
  /** Approximate bytes of values and keys. */
  readonly maxBytes: number
  /** Whether the oldest items may be evicted. */
  readonly evict: boolean
}

interface Item {
  bytes: number
  count: number
}

/**
 * Counts the contents by space and item. Everything that shares a key or stream id in one space, such as a conversation's
 * record and its log, is one item, evicted as a whole.
 */
export interface Capacity {
  readonly bytes: number
  readonly count: number
  /** Counts a change of an item, which becomes the newest of its space. */
  change(space: string, id: string, bytes: number, count: number): void
  /**
   * Evicts items, oldest first, until the limits hold, except those in `keep`. Throws STORE_TOO_LARGE if that does not suffice.
   */
  fit(keep: () => ReadonlySet<string>, evict: (space: string, id: string) => void): void
}

/** The name of an item in `keep`. */
export const itemName = (space: string, id: string): string => `${space}\u0000${id}`

/** Creates the counters of a store. */
export function createCapacity(limits: CapacityLimits): Capacity {
  const spaces = new Map<string, { bytes: number; items: Map<string, Item>; youngest?: string }>()
  let [bytes, count] = [0, 0]
  const isOver = () => bytes > limits.maxBytes || count > limits.maxRecords

  const spaceOf = (name: string) => {
    let space = spaces.get(name)
    if (!space) spaces.set(name, (space = { bytes: 0, items: new Map() }))
    return space
  }
  // Evicts only from the fullest space, so that frequent data does not displace rare data such as settings and tokens.
  const fullest = () => [...spaces].reduce((most, space) => (space[1].bytes > most[1].bytes ? space : most))
  // A hundredth at once: finding the oldest costs more than evicting it.
  const isEnough = () =>
    bytes <= limits.maxBytes * KEPT && count <= limits.maxRecords - Math.floor(limits.maxRecords * (1 - KEPT))
  const evictOldest = (kept: ReadonlySet<string>, evict: (space: string, id: string) => void): boolean => {
    const before = count
    const [name, { items }] = fullest()
    for (const id of items.keys()) {
      if (isEnough()) break
      if (!kept.has(itemName(name, id))) evict(name, id)
    }
    return count < before
  }
  return {
    get bytes() {
      return bytes
    },
    get count() {
      return count
    },
    change(name, id, moreBytes, more) {
      const space = spaceOf(name)
      const item = space.items.get(id) ?? { bytes: 0, count: 0 }
      item.bytes += moreBytes
      item.count += more
      if (space.youngest !== id || item.count === 0) space.items.delete(id)
      if (item.count > 0) space.items.set(id, item)
      space.youngest = item.count > 0 ? id : undefined
      space.bytes += moreBytes
      bytes += moreBytes
      count += more
    },
    fit(keep, evict) {
      if (!isOver()) return
      const kept = keep()
      while (isOver()) if (!limits.evict || !evictOldest(kept, evict)) throw full(limits)
    },
  }
}

const KEPT = 0.99

const full = ({ maxRecords, maxBytes }: CapacityLimits) =>
  storeTooLarge(
    `the store in memory is full: it holds at most ${maxRecords} records and ${maxBytes} bytes`,
    'Raise store.max_records or store.max_bytes, set store.evict: true, or use @svc/plugin-store-sqlite',
    { maxRecords, maxBytes }
  )
