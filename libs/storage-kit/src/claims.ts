import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, type CallContext } from '@svc/core'
import type { Lease, LeaseRequest, Store } from '@svc/core/contracts'

/** Acquires a lease unless it is taken. A holder gets back a lease that it already has, so use a new holder for each claim. */
export async function tryAcquire(
  store: Store,
  lease: string,
  request: Omit<LeaseRequest, 'waitMs'>,
  ctx: CallContext
): Promise<Lease | undefined> {
  try {
    return await store.acquire(lease, { ...request, waitMs: 0 }, ctx)
  } catch (error) {
    if (codeOf(error) === 'LEASE_BUSY') return undefined
    throw error
  }
}

/** Ignores a conflict with another process: `.catch(onlyConflict)`. */
export function onlyConflict(error: unknown): void {
  if (codeOf(error) !== 'STORE_CONFLICT') throw error
}

/** Wakes waiters of this process. */
export class Wakeup {
  readonly #waiting = new Set<AbortController>()
  #rings = 0

  /** Number of wake-ups. Read it before you look for work, so that you miss no wake-up in between. */
  get rings(): number {
    return this.#rings
  }

  ring(): void {
    this.#rings += 1
    for (const wait of this.#waiting) wait.abort()
  }

  /** Resolves at the next wake-up after `rings`, after `ms`, or when the signal aborts. */
  async after(rings: number, ms: number, signal: AbortSignal): Promise<void> {
    if (this.#rings !== rings || signal.aborted) return
    const wait = new AbortController()
    this.#waiting.add(wait)
    await sleep(ms, undefined, { signal: AbortSignal.any([signal, wait.signal]) }).catch(() => {})
    this.#waiting.delete(wait)
  }
}
