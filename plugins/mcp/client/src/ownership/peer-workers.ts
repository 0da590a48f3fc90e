import { type CallContext, codeOf, type Log } from '@svc/core'
import type { Fence, Json, Peers, Store } from '@svc/core/contracts'
import { acquireHold, type LeaseHold } from '@svc/storage-kit'

/** The topic of the questions to the owner of a server. */
export const TOPIC = 'mcp-client'
export const PING = { do: 'ping' } as const

/** The other workers of this server, as candidates for the ownership of a connection. */
export class PeerWorkers {
  readonly #peers: Peers
  readonly #exited = new Set<string>()

  constructor(peers: Peers) {
    this.#peers = peers
  }

  /** Whether a worker is known to have ended. */
  hasExited(worker: string): boolean {
    return this.#exited.has(worker)
  }

  markExited(worker: string): void {
    this.#exited.add(worker)
  }

  /** Pings a worker, and marks it if it has ended. */
  async ping(worker: string, ctx: CallContext): Promise<void> {
    if (this.#exited.has(worker)) return
    for await (const _ of this.ask(worker, PING, ctx)) return
  }

  async *ask(worker: string, message: Json, ctx: CallContext): AsyncIterable<Json> {
    try {
      yield* this.#peers.ask(worker, TOPIC, message, ctx)
    } catch (error) {
      if (codeOf(error) === 'PEER_GONE') this.#exited.add(worker)
      throw error
    }
  }
}

/** Whether a failed question has reached no owner: a worker that ends answers no topic. */
export const reachedNoOwner = (error: unknown): boolean =>
  ['MCP_MOVED', 'PEER_SILENT'].includes(codeOf(error) ?? '') ||
  (codeOf(error) === 'PEER_GONE' && (error as { details?: Record<string, unknown> }).details?.['reached'] === false)

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

/** The lease of a killed worker expires after this time, unless another worker releases it earlier. */
const LEASE_MS = 30_000
const RELEASE_MS = 5_000

/** The lease of a server: its holder owns the server. */
export class ServerLease {
  readonly #options: ServerLeaseOptions
  /** The lease that was acquired last. */
  #hold: LeaseHold | undefined

  constructor(options: ServerLeaseOptions) {
    this.#options = options
  }

  /** Returns the fence of the lease, `undefined` if another worker holds it. */
  async acquire(): Promise<Fence | undefined> {
    const { store, deadHolder, lasting } = this.#options
    const fence = await this.#tryAcquire()
    const dead = fence ? undefined : deadHolder()
    if (dead === undefined) return fence
    await store.releaseHolder(dead, lasting)
    return this.#tryAcquire()
  }

  /** Returns false if another worker can hold the lease by now: it is lost, or was not renewed in time. */
  async renew(fence: Fence): Promise<boolean> {
    const { lease, log, lasting } = this.#options
    const hold = this.#hold
    if (hold?.fence.fence !== fence.fence) return false
    try {
      await hold.renew(lasting)
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
      this.#hold = await acquireHold(store, lease, { holder, ttlMs: LEASE_MS, waitMs: 0 }, lasting)
      return this.#hold.fence
    } catch (error) {
      if (codeOf(error) !== 'LEASE_BUSY') throw error
      return undefined
    }
  }
}
