import type { Counted, CountWindow } from '@svc/core/contracts'
import { endOf, hit, type KeptWindow } from '@svc/storage-kit'

/** The counted hits of one process. */
export interface Counts {
  count(key: string, windows: readonly CountWindow[]): Counted
  /** How many keys are kept. */
  readonly size: number
}

/** So many keys are looked at with each key that begins anew: those whose windows are over go. */
const SWEPT = 2

/** Makes counts of at most so many keys; beyond that those whose windows began first are forgotten. */
export function createCounts(most: number): Counts {
  // In the order in which their longest windows began.
  const keys = new Map<string, readonly KeptWindow[]>()
  let sweeper = keys.entries()

  const sweep = (now: number) => {
    for (let looks = 0; looks < SWEPT; looks++) {
      const next = sweeper.next()
      if (next.done) sweeper = keys.entries()
      else if (endOf(next.value[1]) <= now) keys.delete(next.value[0])
    }
  }
  const begin = (key: string, kept: readonly KeptWindow[], now: number) => {
    keys.delete(key)
    keys.set(key, kept)
    sweep(now)
    for (const oldest of keys.keys()) {
      if (keys.size <= most) break
      keys.delete(oldest)
    }
  }
  return {
    get size() {
      return keys.size
    },
    count(key, windows) {
      const now = Date.now()
      const before = keys.get(key)
      const { counted, kept } = hit(before ?? [], windows, now)
      if (before && (kept === before || endOf(kept) === endOf(before))) keys.set(key, kept)
      else if (kept.length > 0) begin(key, kept, now)
      return counted
    },
  }
}
