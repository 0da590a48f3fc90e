import { codeOf, type Use } from '@svc/core'
import type { Fence, Json, QueuedRun, RunClaim, RunQueue, Store, StoreRecord } from '@svc/core/contracts'
import { Bell } from './bell.ts'
import { type Place, QUEUE, RUN_LEASE, slotLease } from './space.ts'

export interface QueueParts {
  readonly store: Store
  /** What all leases of this process begin with. */
  readonly holder: string
  readonly lasting: Use
}

/** A claim lasts so long without being kept. */
const CLAIM_MS = 30_000
/** What is held is looked at again after so long: its holder may be gone. */
const HELD_MS = 60_000
/** What other processes put into the queue is seen after so long. */
const POLL_MS = 1_000
const PAGE = 50
const NEVER = Number.MAX_SAFE_INTEGER

/** The queue of runs in the store: a record a run, and a lease for whoever works on it. */
export class StoreQueue implements RunQueue {
  readonly #parts: QueueParts
  readonly #bell = new Bell()
  /** The places of groups that claims of this process hold. */
  readonly #slots = new Map<string, Fence>()

  constructor(parts: QueueParts) {
    this.#parts = parts
  }

  async put(run: QueuedRun, { claim }: { readonly claim: boolean }, use: Use): Promise<RunClaim | undefined> {
    const slot = claim && run.group ? await this.#slot(run.group, use) : undefined
    const taken = claim && (!run.group || slot !== undefined)
    const place = { ...placeOf(run), ...(taken ? { state: 'held' as const, due: Date.now() + HELD_MS } : {}) }
    const [lease] = await Promise.all([taken ? this.#lease(RUN_LEASE + run.id, use) : undefined, this.#write(run.id, place, {}, use)])
    if (!lease) {
      this.#bell.ring()
      return undefined
    }
    if (slot) this.#slots.set(run.id, slot)
    return { id: run.id, fence: lease }
  }

  async *take(use: Use): AsyncGenerator<RunClaim, void> {
    while (!use.signal.aborted) {
      const rung = this.#bell.next(POLL_MS, use.signal)
      const full = new Set<string>()
      let count = 0
      for await (const found of this.#due(use)) {
        const claim = await this.#claim(found, full, use)
        if (!claim) continue
        count += 1
        yield claim
        if (use.signal.aborted) return
      }
      if (count === 0) await rung
    }
  }

  async keep({ id, fence }: RunClaim, use: Use): Promise<void> {
    const slot = this.#slots.get(id)
    await Promise.all([fence, ...(slot ? [slot] : [])].map(one => this.#parts.store.renew(one, CLAIM_MS, use)))
  }

  async leave(claim: RunClaim, how: { readonly due: number | null } | 'ended', use: Use): Promise<void> {
    const { store } = this.#parts
    const { id, fence } = claim
    try {
      if (how === 'ended') await store.batch([{ op: 'delete', collection: QUEUE, key: id }], { fence }, use)
      else await this.#update(id, place => asleep(place, how.due), { fence }, use)
    } finally {
      await this.#free(claim, use)
    }
  }

  async wake(id: string, use: Use): Promise<void> {
    await this.#update(id, woken, {}, use)
    this.#bell.ring()
  }

  /** A process has ended, and its leases are free. */
  async gone(holder: string, use: Use): Promise<void> {
    const { store } = this.#parts
    for (let cursor: string | undefined; ; ) {
      const page = await store.range(QUEUE, { index: 'by_state', equals: ['held'], limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }, use)
      for (const record of page.records)
        if (placeIn(record).holder?.startsWith(holder)) await this.#update(record.key, place => ({ ...place, due: Date.now() }), {}, use)
      cursor = page.next
      if (cursor === undefined) break
    }
    this.#bell.ring()
  }

  /** Runs whose time has come: those that wait, and those whose holder may be gone. */
  async *#due(use: Use): AsyncGenerator<StoreRecord, void> {
    for (const state of ['ready', 'asleep', 'held'])
      for (let cursor: string | undefined; ; ) {
        const query = { index: 'by_state', equals: [state], to: Date.now() + 1, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }
        const page = await this.#parts.store.range(QUEUE, query, use)
        yield* page.records
        cursor = page.next
        if (cursor === undefined) break
      }
  }

  async #claim(found: StoreRecord, full: Set<string>, use: Use): Promise<RunClaim | undefined> {
    const { group } = placeIn(found)
    if (group && full.has(group.name)) return undefined
    const lease = await this.#lease(RUN_LEASE + found.key, use)
    if (!lease) return this.#isHeld(found, use)
    const slot = group && (await this.#slot(group, use))
    const claim = { id: found.key, fence: lease }
    if (group && !slot) full.add(group.name)
    if (slot) this.#slots.set(found.key, slot)
    if ((!group || slot) && (await this.#hold(found, lease, use))) return claim
    await this.#free(claim, use)
    return undefined
  }

  /** Somebody works on it: it is looked at again later. */
  async #isHeld(found: StoreRecord, use: Use): Promise<undefined> {
    if (placeIn(found).state === 'held') await this.#write(found.key, { ...placeIn(found), due: Date.now() + HELD_MS }, { ifVersion: found.version }, use).catch(onlyConflict)
  }

  async #hold({ key, version, ...found }: StoreRecord, fence: Fence, use: Use): Promise<boolean> {
    const { woken: _, ...place } = placeIn({ key, version, ...found })
    try {
      await this.#write(key, { ...place, state: 'held', due: Date.now() + HELD_MS, holder: this.#parts.holder }, { ifVersion: version, fence }, use)
      return true
    } catch (error) {
      onlyConflict(error)
      return false
    }
  }

  async #free({ id, fence }: RunClaim, use: Use): Promise<void> {
    const slot = this.#slots.get(id)
    this.#slots.delete(id)
    await Promise.all([fence, ...(slot ? [slot] : [])].map(one => this.#parts.store.release(one, use)))
    this.#bell.ring()
  }

  /** A place of a group, or undefined where all are taken. */
  async #slot({ name, limit }: NonNullable<QueuedRun['group']>, use: Use): Promise<Fence | undefined> {
    for (let at = 0; at < limit; at++) {
      const slot = await this.#lease(slotLease(name, at), use)
      if (slot) return slot
    }
    return undefined
  }

  async #lease(lease: string, use: Use): Promise<Fence | undefined> {
    const { store, holder } = this.#parts
    try {
      // one holder a claim: a holder gets back a lease that it has
      const got = await store.acquire(lease, { holder: `${holder}${crypto.randomUUID()}`, ttlMs: CLAIM_MS, waitMs: 0 }, use)
      return { lease, fence: got.fence }
    } catch (error) {
      if (codeOf(error) === 'LEASE_BUSY') return undefined
      throw error
    }
  }

  /** Changes the place of a run, whoever else does; nothing where it has none. */
  async #update(id: string, change: (place: Place) => Place | undefined, { fence }: { readonly fence?: Fence }, use: Use): Promise<void> {
    for (;;) {
      const found = await this.#parts.store.get(QUEUE, id, use)
      const next = found && change(placeIn(found))
      if (!next) return
      try {
        return await this.#write(id, next, { ifVersion: found.version, ...(fence ? { fence } : {}) }, use)
      } catch (error) {
        onlyConflict(error)
      }
    }
  }

  async #write(key: string, place: Place, { ifVersion, fence }: { readonly ifVersion?: number; readonly fence?: Fence }, use: Use): Promise<void> {
    const value = { ...place, ...(place.state === 'held' ? { holder: this.#parts.holder } : {}) } as unknown as Json
    const put = { op: 'put' as const, collection: QUEUE, key, value, ...(ifVersion === undefined ? {} : { ifVersion }) }
    await this.#parts.store.batch([put], fence ? { fence } : {}, use)
  }
}

const placeIn = ({ value }: StoreRecord) => value as unknown as Place

const placeOf = ({ due, group }: QueuedRun): Place => ({ state: 'ready', due: due ?? NEVER, ...(group ? { group } : {}) })

/** News that came meanwhile is not slept over. */
function asleep({ woken: news, holder: _, ...place }: Place, due: number | null): Place {
  return news ? { ...place, state: 'ready', due: Date.now() } : { ...place, state: 'asleep', due: due ?? NEVER }
}

function woken(place: Place): Place | undefined {
  if (place.state === 'held') return place.woken ? undefined : { ...place, woken: true }
  return { ...place, state: 'ready', due: Math.min(place.due, Date.now()) }
}

/** Another was faster. */
function onlyConflict(error: unknown): void {
  if (!['STORE_CONFLICT', 'STORE_FENCED'].includes(codeOf(error) ?? '')) throw error
}
