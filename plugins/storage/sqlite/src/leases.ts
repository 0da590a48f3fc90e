import type { Use } from '@svc/core'
import type { Fence, Lease, Store } from '@svc/core/contracts'
import { checkLease, createLeaseQueue } from '@svc/storage-kit'
import type { Link } from './link.ts'
import type { Reader } from './reader.ts'
import type { Answer } from './wire.ts'

/** The lease part of the contract. */
export interface Leases {
  readonly contract: Pick<Store, 'acquire' | 'renew' | 'release' | 'releaseHolder'>
  /** Ends all waiting. */
  close(): void
}

/** Between two looks at a lease that another process holds. */
const LONGEST_LOOK_MS = 50

/** Makes the leases over the writer's thread; `enter` refuses calls that come too late. */
export function createLeases(link: Link, reader: Reader, enter: (use: Use) => void): Leases {
  const queue = createLeaseQueue({
    async attempt(lease, { holder, ttlMs }, looks) {
      // Whoever waits for another process only looks, so as not to take the file's one write lock for nothing.
      const heldUntil = looks > 0 ? await reader.reading(reads => reads.heldUntil(lease)) : 0
      if (heldUntil > Date.now()) return { busyUntil: heldUntil }
      const answer = await link.send(['acquire', lease, holder, ttlMs])
      return answer[0] === 0 ? { busyUntil: answer[1]! } : leaseOf(lease, answer)
    },
    release: lease => release(lease),
    lookAgain: looks => Math.min(LONGEST_LOOK_MS, 2 ** looks),
  })
  const release = async ({ lease, fence }: Fence) => {
    await link.send(['release', lease, fence])
    queue.freed(lease)
  }
  const contract: Leases['contract'] = {
    async acquire(lease, request, use) {
      enter(use)
      checkLease(lease, request.ttlMs, request.waitMs, request.holder)
      return queue.acquire(lease, request, use)
    },
    async renew({ lease, fence }, ttlMs, use) {
      enter(use)
      checkLease(lease, ttlMs)
      return leaseOf(lease, await link.send(['renew', lease, fence, ttlMs], use.signal))
    },
    async release(lease, use) {
      enter(use)
      await release(lease)
    },
    async releaseHolder(holderPrefix, use) {
      enter(use)
      await link.send(['releaseHolder', holderPrefix])
      queue.freed()
    },
  }
  return { contract, close: () => queue.close() }
}

const leaseOf = (lease: string, [fence, expiresAt]: Answer): Lease => ({ lease, fence: fence!, expiresAt: expiresAt! })
