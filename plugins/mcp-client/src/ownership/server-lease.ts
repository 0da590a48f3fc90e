import { codeOf, type Log, type Use } from '@svc/core'
import type { Fence, Store } from '@svc/core/contracts'

export interface ClaimParts {
  readonly store: Store
  readonly lease: string
  /** The prefix of this worker's leases. */
  readonly holder: string
  /** The prefix of the leases of an owner that has surely ended. */
  readonly deadHolder: () => string | undefined
  readonly log: Log
  readonly lasting: Use
}

/** The right to own a server: a lease of the store. */
export interface Claim {
  /** The proof of it; none where another worker has it. */
  take(): Promise<Fence | undefined>
  /** Keeps it. False where another worker has it by now. */
  keep(fence: Fence): Promise<boolean>
  /** Gives it back. */
  leave(fence: Fence): Promise<void>
}

/** Milliseconds that a worker which ended without a word may keep a server, where nobody hears of its end. */
const LEASE_MS = 30_000
const LEAVE_MS = 5_000

export function createClaim({ store, lease, holder, deadHolder, log, lasting }: ClaimParts): Claim {
  const acquire = async () => {
    const { fence } = await store.acquire(lease, { holder, ttlMs: LEASE_MS, waitMs: 0 }, lasting)
    return { lease, fence }
  }
  const unlessBusy = (error: unknown) => {
    if (codeOf(error) !== 'LEASE_BUSY') throw error
    return undefined
  }
  return {
    async take() {
      const fence = await acquire().catch(unlessBusy)
      const dead = fence ? undefined : deadHolder()
      if (dead === undefined) return fence
      await store.releaseHolder(dead, lasting)
      return acquire().catch(unlessBusy)
    },
    async keep(fence) {
      try {
        await store.renew(fence, LEASE_MS, lasting)
      } catch (error) {
        if (codeOf(error) === 'STORE_FENCED') return false
        log.warn({ err: error, lease }, 'the lease of a tool server could not be renewed')
      }
      return true
    },
    async leave(fence) {
      // also where this worker ends, and all that lasts with it
      const use = { ...lasting, signal: AbortSignal.timeout(LEAVE_MS) }
      const failed = (err: unknown) => log.warn({ err, lease }, 'a tool server is free only when its lease runs out')
      await store.release(fence, use).catch(failed)
    },
  }
}
