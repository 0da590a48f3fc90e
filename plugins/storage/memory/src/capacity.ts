import { storeTooLarge } from '@svc/storage-kit'

/** How much the store may hold. */
export interface CapacityLimits {
  /** Records and log entries together. */
  readonly maxRecords: number
  /** About so many bytes of values and keys. */
  readonly maxBytes: number
  /** Whether the oldest may go to make capacity. */
  readonly evict: boolean
}

interface Thing {
  bytes: number
  count: number
}

/**
 * Counts what is held, by space and thing: whatever shares a key or stream id within one space (a conversation's record and its
 * log) is one thing, kept or given up as a whole.
 */
export interface Capacity {
  readonly bytes: number
  readonly count: number
  /** Counts a change of a thing, which thereby becomes the youngest of its space. */
  change(space: string, id: string, bytes: number, count: number): void
  /** Gives up things, oldest first, until the limits hold, but none of `keep`. Throws STORE_TOO_LARGE when that does not suffice. */
  fit(keep: () => ReadonlySet<string>, evict: (space: string, id: string) => void): void
}

/** How `keep` names a thing. */
export const thingName = (space: string, id: string): string => `${space}\u0000${id}`

/** Makes the books of a store. */
export function createCapacity(limits: CapacityLimits): Capacity {
  const spaces = new Map<string, { bytes: number; things: Map<string, Thing>; youngest?: string }>()
  let [bytes, count] = [0, 0]
  const isOver = () => bytes > limits.maxBytes || count > limits.maxRecords

  const spaceOf = (name: string) => {
    let space = spaces.get(name)
    if (!space) spaces.set(name, (space = { bytes: 0, things: new Map() }))
    return space
  }
  // Of the fullest space only: what is small and rarely written (a setting, a token) is not pushed out by what is plenty.
  const fullest = () => [...spaces].reduce((most, one) => (one[1].bytes > most[1].bytes ? one : most))
  // A hundredth at once: looking for the oldest costs more than giving it up.
  const isEnough = () =>
    bytes <= limits.maxBytes * KEPT && count <= limits.maxRecords - Math.floor(limits.maxRecords * (1 - KEPT))
  const giveUp = (kept: ReadonlySet<string>, evict: (space: string, id: string) => void): boolean => {
    const before = count
    const [name, { things }] = fullest()
    for (const id of things.keys()) {
      if (isEnough()) break
      if (!kept.has(thingName(name, id))) evict(name, id)
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
      const thing = space.things.get(id) ?? { bytes: 0, count: 0 }
      thing.bytes += moreBytes
      thing.count += more
      if (space.youngest !== id || thing.count === 0) space.things.delete(id)
      if (thing.count > 0) space.things.set(id, thing)
      space.youngest = thing.count > 0 ? id : undefined
      space.bytes += moreBytes
      bytes += moreBytes
      count += more
    },
    fit(keep, evict) {
      if (!isOver()) return
      const kept = keep()
      while (isOver()) if (!limits.evict || !giveUp(kept, evict)) throw full(limits)
    },
  }
}

const KEPT = 0.99

const full = ({ maxRecords, maxBytes }: CapacityLimits) =>
  storeTooLarge(
    `the store in memory is full: it holds at most ${maxRecords} records and ${maxBytes} bytes`,
    'raise store.max_records or store.max_bytes, set store.evict: true, or use @svc/plugin-store-sqlite',
    { maxRecords, maxBytes }
  )
