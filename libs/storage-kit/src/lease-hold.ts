import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, codeOf, withTimeout } from '@svc/core'
import type { Fence, Lease, LeaseRequest, Store } from '@svc/core/contracts'
import { storeFenced } from './errors.ts'
import { tryAcquire } from './records.ts'

type LeaseStore = Pick<Store, 'acquire' | 'renew' | 'release'>

/** A holder stops this part of the time before its lease expires, at most two seconds before. */
const MARGIN = 0.1
const LONGEST_MARGIN_MS = 2_000
/** Delay after a renewal that failed. */
const AGAIN_MS = 1_000
const RELEASE_MS = 5_000
/** The longest delay of a timer. */
const LONGEST_MS = 2 ** 31 - 1

/**
 * A lease that this process holds, by the monotonic clock of the process: neither a change of its clock nor a difference to the
 * clock of the store changes when it stops.
 */
export class LeaseHold {
  readonly fence: Fence
  readonly #store: LeaseStore
  readonly #ttlMs: number
  #until: number

  /** `asked`: `performance.now()` before the call of `acquire`. */
  constructor(store: LeaseStore, lease: Lease, { asked, ttlMs }: { readonly asked: number; readonly ttlMs: number }) {
    this.fence = { lease: lease.lease, fence: lease.fence }
    this.#store = store
    this.#ttlMs = ttlMs
    this.#until = untilOf(asked, lease, ttlMs)
  }

  /** Milliseconds for which the holder may go on; 0 when it must stop. */
  get leftMs(): number {
    return Math.max(0, this.#until - performance.now())
  }

  /**
   * Renews the lease. Throws STORE_FENCED when it is lost or was not renewed in time: stop. After another error, the lease is
   * still held for `leftMs`: try again.
   */
  async renew(ctx: CallContext): Promise<void> {
    const asked = performance.now()
    const late = () => storeFenced(this.fence.lease, this.fence.fence)
    if (this.leftMs === 0) throw late()
    const renewing = (signal: AbortSignal) => this.#store.renew(this.fence, this.#ttlMs, { ...ctx, signal })
    try {
      const lease = await withTimeout(Math.min(this.leftMs, LONGEST_MS), renewing, { signal: ctx.signal, late })
      this.#until = Math.max(this.#until, untilOf(asked, lease, this.#ttlMs))
    } catch (error) {
      if (codeOf(error) === 'STORE_FENCED') this.#until = 0
      throw error
    }
  }
}

const untilOf = (asked: number, { validMs }: Lease, ttlMs: number) =>
  asked + validMs - Math.min(ttlMs * MARGIN, LONGEST_MARGIN_MS)

/** Acquires a lease for a holder that renews it itself. Throws LEASE_BUSY. */
export async function acquireHold(store: LeaseStore, lease: string, request: LeaseRequest, ctx: CallContext): Promise<LeaseHold> {
  const asked = performance.now()
  return new LeaseHold(store, await store.acquire(lease, request, ctx), { asked, ttlMs: request.ttlMs })
}

/** As `acquireHold`, but returns `undefined` if the lease is taken. Use a new holder for each claim: a holder gets back a lease that it already has. */
export async function tryHold(
  store: LeaseStore,
  lease: string,
  request: Omit<LeaseRequest, 'waitMs'>,
  ctx: CallContext
): Promise<LeaseHold | undefined> {
  const asked = performance.now()
  const taken = await tryAcquire(store, lease, request, ctx)
  return taken && new LeaseHold(store, taken, { asked, ttlMs: request.ttlMs })
}

/** A lease that renews itself. Disposing releases it. */
export interface KeptLease extends AsyncDisposable {
  readonly fence: Fence
  /** The context of the work under the lease: its signal aborts with STORE_FENCED when the lease is lost or not renewed in time. */
  readonly ctx: CallContext
}

/**
 * Acquires a lease and renews it until it is disposed: `await using kept = await keepLease(store, 'nightly', { holder, ttlMs:
 * 30_000, waitMs: 0 }, ctx)`. Throws LEASE_BUSY.
 */
export async function keepLease(store: LeaseStore, lease: string, request: LeaseRequest, ctx: CallContext): Promise<KeptLease> {
  const hold = await acquireHold(store, lease, request, ctx)
  const [lost, ended] = [new AbortController(), new AbortController()]
  const work = { ...ctx, signal: AbortSignal.any([ctx.signal, lost.signal]) }
  const keeping = keep(hold, request.ttlMs, { ...ctx, signal: AbortSignal.any([work.signal, ended.signal]) }).catch(error =>
    lost.abort(error)
  )
  return {
    fence: hold.fence,
    ctx: work,
    async [Symbol.asyncDispose]() {
      ended.abort()
      await keeping
      // also after an abort; a lease that cannot be released expires by itself
      await store.release(hold.fence, { ...ctx, signal: AbortSignal.timeout(RELEASE_MS) }).catch(() => {})
    },
  }
}

/** Renews until the signal aborts. Throws STORE_FENCED when the lease is lost. */
async function keep(hold: LeaseHold, ttlMs: number, ctx: CallContext): Promise<void> {
  for (let waitMs = ttlMs / 3; !ctx.signal.aborted; ) {
    await sleep(Math.min(waitMs, hold.leftMs, LONGEST_MS), undefined, { signal: ctx.signal, ref: false }).catch(() => {})
    if (ctx.signal.aborted) return
    try {
      await hold.renew(ctx)
      waitMs = ttlMs / 3
    } catch (error) {
      if (ctx.signal.aborted) return
      if (codeOf(error) === 'STORE_FENCED') throw error
      waitMs = Math.min(AGAIN_MS, ttlMs / 10)
    }
  }
}
