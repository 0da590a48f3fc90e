import type { CallContext } from '@svc/core'
import type { Fence, QueuedRun, Space, Store } from '@svc/core/contracts'
import { checkKey } from './check.ts'
import { storeFenced, storeInvalid } from './errors.ts'
import { type LeaseHold, tryHold } from './lease-hold.ts'

/** The leases of the claims of a run queue: one for each run, and one for each slot of a group. */
export class QueueLeases {
  readonly #store: Store
  readonly #holder: string
  readonly #claimMs: number
  /** Group slots that runs of this process hold. */
  readonly #places = new Map<string, LeaseHold>()
  /** Runs that this process executes. */
  readonly #runs = new Map<string, LeaseHold>()

  /** `claimMs`: a claim expires after this time without renewal. */
  constructor(store: Store, holder: string, claimMs: number) {
    this.#store = store
    this.#holder = holder
    this.#claimMs = claimMs
  }

  /** Acquires the lease of a run; undefined if it is taken. */
  async run(id: string, ctx: CallContext): Promise<Fence | undefined> {
    const hold = await this.#acquire(RUN_LEASE + id, ctx)
    if (hold) this.#runs.set(id, hold)
    return hold?.fence
  }

  /** Acquires a group slot for a run. Returns false if all slots are taken, or if this process already executes the run. */
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

  hasSlot(id: string): boolean {
    return this.#places.has(id)
  }

  /** Releases the group slot of a run. Returns whether it had one. */
  async leave(id: string, ctx: CallContext): Promise<boolean> {
    const place = this.#places.get(id)
    this.#places.delete(id)
    if (place) await this.#store.release(place.fence, ctx)
    return place !== undefined
  }

  async free(id: string, fence: Fence, ctx: CallContext): Promise<boolean> {
    // the same run can be claimed again by now
    if (this.#runs.get(id)?.fence.fence === fence.fence) this.#runs.delete(id)
    const [hadPlace] = await Promise.all([this.leave(id, ctx), this.#store.release(fence, ctx)])
    return hadPlace
  }

  /** Renews the leases of a claim. Throws STORE_FENCED if one is lost or was not renewed in time: the run must stop. */
  async keep(id: string, fence: Fence, ctx: CallContext): Promise<void> {
    const [run, place] = [this.#runs.get(id), this.#places.get(id)]
    if (run?.fence.fence !== fence.fence) throw storeFenced(fence.lease, fence.fence)
    const all = place ? [run, place] : [run]
    await Promise.all(all.map(hold => hold.renew(ctx)))
  }

  #acquire(lease: string, ctx: CallContext): Promise<LeaseHold | undefined> {
    const request = { holder: `${this.#holder}${crypto.randomUUID()}`, ttlMs: this.#claimMs }
    return tryHold(this.#store, lease, request, ctx)
  }
}

const RUN_LEASE = 'run/'
/** The name of the lease of a run. */
export const runLease = (id: string): string => RUN_LEASE + id
/** Lease of a group slot. */
const slotLease = (group: string, at: number) => `run-place/${group}/${at}`

/** Throws STORE_INVALID for names that no store accepts, and for limits and times that are none. */
export function checkQueuedRun({ id, due, group, affinity }: QueuedRun): void {
  checkKey('run id', id)
  if (affinity !== undefined) checkKey('name of a node', affinity)
  if (group) checkKey('name of a group', group.name)
  if (group && !(Number.isSafeInteger(group.limit) && group.limit >= 1))
    throw storeInvalid('the limit of a group must be an integer from 1')
  if (Number.isNaN(due)) throw storeInvalid('the time of a run must be a number')
}

/** The entries of the queue in the store. */
export const RUN_ENTRIES = 'run_queue'

/** A queue entry. */
export interface QueueEntry {
  /** `ready`: free; `held`: a process executes it; `asleep`: it waits for its time or a wake-up. */
  readonly state: 'ready' | 'held' | 'asleep'
  /** Time of the next check, in Unix milliseconds. */
  readonly due: number
  readonly group?: QueuedRun['group']
  readonly affinity?: QueuedRun['affinity']
  readonly holder?: string
  /** Whether a notice came while it was held. */
  readonly woken?: boolean
}

export const RUN_SPACE: Space = {
  name: 'run_queue',
  version: 1,
  collections: { [RUN_ENTRIES]: { indexes: { by_state: ['state', 'due'] } } },
}
