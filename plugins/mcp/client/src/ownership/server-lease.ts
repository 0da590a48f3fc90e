import { codeOf, type Log, type CallContext } from '@svc/core'
import type { Fence, Store } from '@svc/core/contracts'

export interface ServerLeaseOptions {
  readonly store: Store
  readonly lease: string
  /** The prefix of this worker's leases. */
  readonly holder: string
  /** The prefix of the leases of an owner that has ended. */
  readonly deadHolder: () => string | undefined
  readonly log: Log
  readonly lasting: CallContext
}

/** A worker that was killed keeps its server for this long where no other worker learns of its end. */
const LEASE_MS = 30_000
const RELEASE_MS = 5_000

/** The lease of a server: its holder owns the server. */
export class ServerLease {
  readonly #options: ServerLeaseOptions

  constructor(options: ServerLeaseOptions) {
    this.#options = options
  }

  /** Returns the fence of the lease; undefined where another worker holds it. */
  async acquire(): Promise<Fence | undefined> {
    const { store, deadHolder, lasting } = this.#options
    const fence = await this.#tryAcquire()
    const dead = fence ? undefined : deadHolder()
    if (dead === undefined) return fence
    await store.releaseHolder(dead, lasting)
    return this.#tryAcquire()
  }

  /** Returns false where another worker holds the lease by now. */
  async renew(fence: Fence): Promise<boolean> {
    const { store, lease, log, lasting } = this.#options
    try {
      await store.renew(fence, LEASE_MS, lasting)
    } catch (error) {
      if (codeOf(error) === 'STORE_FENCED') return false
      log.warn({ err: error, lease }, 'failed to renew the lease of an MCP server')
    }
    return true
  }

  async release(fence: Fence): Promise<void> {
    const { store, lease, log, lasting } = this.#options
    // must also work while this worker ends and `lasting` is aborted
    const ctx = { ...lasting, signal: AbortSignal.timeout(RELEASE_MS) }
    await store
      .release(fence, ctx)
      .catch((err: unknown) => log.warn({ err, lease }, 'failed to release the lease of an MCP server; it expires by itself'))
  }

  async #tryAcquire(): Promise<Fence | undefined> {
    const { store, lease, holder, lasting } = this.#options
    try {
      const { fence } = await store.acquire(lease, { holder, ttlMs: LEASE_MS, waitMs: 0 }, lasting)
      return { lease, fence }
    } catch (error) {
      if (codeOf(error) !== 'LEASE_BUSY') throw error
      return undefined
    }
  }
}
