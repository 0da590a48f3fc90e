import { type CallContext, codeOf } from '@svc/core'
import type { Fence, QueuedRun, Space, Store } from '@svc/core/contracts'

/** A claim lasts so long without being kept. */
const CLAIM_MS = 30_000

/** The leases behind claims: one a run, and one a place of a group. */
export class Leases {
  readonly #store: Store
  readonly #holder: string
  /** The places of groups that runs of this process hold. */
  readonly #places = new Map<string, Fence>()

  constructor(store: Store, holder: string) {
    this.#store = store
    this.#holder = holder
  }

  /** Undefined where somebody has the run. */
  run(id: string, ctx: CallContext): Promise<Fence | undefined> {
    return this.#acquire(RUN_LEASE + id, ctx)
  }

  /** Takes a place of its group for a run; false where all are taken, or this process works on the run already. */
  async enter(id: string, { name, limit }: NonNullable<QueuedRun['group']>, ctx: CallContext): Promise<boolean> {
    if (this.#places.has(id)) return false
    for (let at = 0; at < limit; at++) {
      const place = await this.#acquire(slotLease(name, at), ctx)
      if (!place) continue
      this.#places.set(id, place)
      return true
    }
    return false
  }

  hasPlace(id: string): boolean {
    return this.#places.has(id)
  }

  /** Whether it held a place of a group. */
  async leave(id: string, ctx: CallContext): Promise<boolean> {
    const place = this.#places.get(id)
    this.#places.delete(id)
    if (place) await this.#store.release(place, ctx)
    return place !== undefined
  }

  async free(id: string, fence: Fence, ctx: CallContext): Promise<boolean> {
    const [hadPlace] = await Promise.all([this.leave(id, ctx), this.#store.release(fence, ctx)])
    return hadPlace
  }

  /** Throws STORE_FENCED where one of them is another's. */
  async keep(id: string, fence: Fence, ctx: CallContext): Promise<void> {
    const place = this.#places.get(id)
    await Promise.all((place ? [fence, place] : [fence]).map(one => this.#store.renew(one, CLAIM_MS, ctx)))
  }

  async #acquire(lease: string, ctx: CallContext): Promise<Fence | undefined> {
    try {
      // one holder a claim: a holder gets back a lease that it has
      const { fence } = await this.#store.acquire(
        lease,
        { holder: `${this.#holder}${crypto.randomUUID()}`, ttlMs: CLAIM_MS, waitMs: 0 },
        ctx
      )
      return { lease, fence }
    } catch (error) {
      if (codeOf(error) === 'LEASE_BUSY') return undefined
      throw error
    }
  }
}

export const QUEUE = 'run_queue'
const RUN_LEASE = 'run/'
/** One of the places of a group. */
const slotLease = (group: string, at: number) => `run-place/${group}/${at}`

/** The place of a run in the queue. */
export interface Place {
  /** `ready`: nobody has it; `held`: somebody works on it; `asleep`: it waits for its time, or to be woken. */
  readonly state: 'ready' | 'held' | 'asleep'
  /** Unix milliseconds from which on it is looked at. */
  readonly due: number
  readonly group?: QueuedRun['group']
  readonly holder?: string
  /** News came while it was held. */
  readonly woken?: boolean
}

export const SPACE: Space = {
  name: 'run_queue',
  version: 1,
  collections: { [QUEUE]: { indexes: { by_state: ['state', 'due'] } } },
}
