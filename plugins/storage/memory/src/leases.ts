import { type LeaseAttempt, createLeaseQueue, type LeaseQueue, steadyNow, storeFenced } from '@svc/storage-kit'
import type { Fence, Lease } from '@svc/core/contracts'

interface Holding {
  readonly holder: string
  readonly fence: number
  expiresAt: number
}

/** The leases of one process. */
export interface MemoryLeases {
  readonly queue: LeaseQueue
  renew(lease: Fence, ttlMs: number): Lease
  release(lease: Fence): void
  releaseHolder(prefix: string): void
  /** Throws STORE_FENCED if another holder has had the lease since. */
  check(fence: Fence): void
}

/** When an expired lease is deleted: until then its holder can still write with it. */
const KEEP_MS = 60 * 60_000

/** Creates the leases of a store in memory. */
export function createLeases(): MemoryLeases {
  const held = new Map<string, Holding>()
  // Higher than any fence of an earlier process: it starts from the clock, which is faster than any caller.
  let last = Date.now() * 1000
  let swept = steadyNow()

  const attempt = (name: string, holder: string, ttlMs: number): LeaseAttempt => {
    const now = steadyNow()
    if (now - swept > KEEP_MS) sweep(held, (swept = now))
    const there = held.get(name)
    if (there && there.expiresAt > now) return { busyMs: there.expiresAt - now }
    const holding = { holder, fence: ++last, expiresAt: now + ttlMs }
    held.set(name, holding)
    return { lease: name, fence: holding.fence, expiresAt: holding.expiresAt }
  }
  const holdingOf = ({ lease, fence }: Fence) => {
    const there = held.get(lease)
    if (there?.fence !== fence) throw storeFenced(lease, fence)
    return there
  }
  const queue = createLeaseQueue({
    attempt: async (lease, { holder, ttlMs }) => attempt(lease, holder, ttlMs),
    release: async lease => release(lease),
    lookAgain: () => Number.POSITIVE_INFINITY,
  })
  const release = ({ lease, fence }: Fence) => {
    if (held.get(lease)?.fence !== fence) return
    held.delete(lease)
    queue.freed(lease)
  }
  return {
    queue,
    renew(lease, ttlMs) {
      const there = holdingOf(lease)
      const now = steadyNow()
      if (there.expiresAt <= now) throw storeFenced(lease.lease, lease.fence)
      there.expiresAt = now + ttlMs
      return { lease: lease.lease, fence: lease.fence, expiresAt: there.expiresAt, validMs: ttlMs }
    },
    release,
    releaseHolder(prefix) {
      for (const [name, { holder }] of held) if (holder.startsWith(prefix)) held.delete(name)
      queue.freed()
    },
    check: holdingOf,
  }
}

function sweep(held: Map<string, Holding>, now: number): void {
  for (const [name, { expiresAt }] of held) if (now - expiresAt > KEEP_MS) held.delete(name)
}
