import { type CallContext, Wakeup } from '@svc/core'
import type { Fence, Json, QueuedRun, ReturnedRun, RunClaim, RunQueue, Store, StoreRecord } from '@svc/core/contracts'
import { onlyConflict } from './records.ts'
import { checkQueuedRun, type QueueEntry, QueueLeases, RUN_ENTRIES as QUEUE } from './run-leases.ts'

/** Maximum waiting time of the gate. */
const LULL_MS = 5

/** A short wait that ends early with the next operation, so that both share a commit. */
class IdleGate {
  #waiting: PromiseWithResolvers<void> | undefined
  #timer: NodeJS.Timeout | undefined

  wait(): Promise<void> {
    this.#waiting ??= Promise.withResolvers<void>()
    this.#timer ??= setTimeout(() => this.end(), LULL_MS)
    return this.#waiting.promise
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#waiting?.resolve()
    this.#waiting = this.#timer = undefined
  }
}

/** The options of a `StoreQueue`. */
export interface StoreQueueOptions {
  readonly store: Store
  /** The prefix of the lease holders of this process. */
  readonly holder: string
  /** The name of the node of this process. */
  readonly node: string
  /** Milliseconds after which a claim expires without renewal. Default 30,000. */
  readonly claimMs?: number
  /**
   * Called when a run waits, or can have lost its process (`held`), before this process looks for due runs. For a queue that finds
   * them elsewhere.
   */
  readonly announce?: (id: string, entry: QueueEntry) => Promise<void>
  /** A context that lasts as long as the process, so that no claim is left unfinished. */
  readonly lasting: CallContext
}

const CLAIM_MS = 30_000
/** When a held entry is checked again, because its holder can be gone: after this many times the life of a claim. */
const HELD_LIVES = 2
/** How often the queue is polled for entries of other processes. */
const POLL_MS = 1_000
/** How long a new process checks all held entries. */
const SETTLE_MS = 5_000
const PAGE = 100
/** The limit of `countDue`. */
const MOST_DUE = 1_000
/** The due time of runs that only a wake-up makes due. */
export const NEVER = Number.MAX_SAFE_INTEGER

/** A run queue in the store: a record for each run, and a lease for the process that executes it. */
export class StoreQueue implements RunQueue {
  readonly #store: Store
  readonly #holder: string
  readonly #node: string
  readonly #heldMs: number
  readonly #lasting: CallContext
  readonly #leases: QueueLeases
  readonly #announce: StoreQueueOptions['announce']
  readonly #wakeup = new Wakeup()
  readonly #lull = new IdleGate()

  constructor({ store, holder, node, claimMs = CLAIM_MS, announce, lasting }: StoreQueueOptions) {
    this.#lasting = lasting
    this.#store = store
    this.#holder = holder
    this.#node = node
    this.#heldMs = HELD_LIVES * claimMs
    this.#leases = new QueueLeases(store, holder, claimMs)
    this.#announce = announce
  }

  async put(run: QueuedRun, { claim }: { readonly claim: boolean }, ctx: CallContext): Promise<RunClaim | undefined> {
    checkQueuedRun(run)
    this.#lull.end()
    const isFree = claim && this.#isHere(run) && (!run.group || (await this.#leases.enter(run.id, run.group, ctx)))
    if (!isFree) {
      await this.#wait(run, ctx)
      return undefined
    }
    const [fence] = await Promise.all([this.#leases.run(run.id, ctx), this.#write(run.id, this.#held(entryOf(run)), {}, ctx)])
    if (fence) return { id: run.id, fence }
    await this.#leases.leave(run.id, ctx)
    return undefined
  }

  /** Makes a run ready. A process that executes it now is notified and continues. */
  async #wait(run: QueuedRun, ctx: CallContext): Promise<void> {
    const change = (place?: QueueEntry) => (place?.state === 'held' ? markWoken(place, run) : entryOf(run))
    await this.#ready(run.id, await this.#update(run.id, change, {}, ctx))
  }

  async *take(ctx: CallContext): AsyncGenerator<RunClaim, void> {
    // holders of a previous process can be gone; their leases expire about now
    const settled = Date.now() + SETTLE_MS
    for (let [lookAt, isIdle] = [0, false]; !ctx.signal.aborted; ) {
      const { rings } = this.#wakeup
      if (isIdle && (await this.isEmpty(ctx))) {
        isIdle = await this.#sleep(rings, ctx)
        continue
      }
      const now = Date.now()
      const until = now < settled && now >= lookAt ? NEVER : now + 1
      if (until === NEVER) lookAt = now + POLL_MS
      const full = new Set<string>()
      let count = 0
      for await (const found of this.due({ waiting: Date.now() + 1, held: until }, ctx)) {
        const claim = ctx.signal.aborted ? undefined : await this.claim(found, full)
        if (!claim) continue
        count += 1
        yield claim
        if (ctx.signal.aborted) return
      }
      isIdle = count === 0 && (await this.#sleep(rings, ctx))
    }
  }

  /** Waits for a wake-up or the next poll. Returns whether none came. */
  async #sleep(rings: number, ctx: CallContext): Promise<boolean> {
    await this.#wakeup.after(rings, POLL_MS, ctx.signal)
    return this.#wakeup.rings === rings
  }

  /** Whether no run waits or is executed: one read instead of one for each state. */
  async isEmpty(ctx: CallContext): Promise<boolean> {
    const { records } = await this.#store.range(QUEUE, { limit: 1 }, ctx)
    return records.length === 0
  }

  async *takeOne(id: string, ctx: CallContext): AsyncGenerator<RunClaim, void> {
    while (!ctx.signal.aborted) {
      const { rings } = this.#wakeup
      const found = await this.#store.get(QUEUE, id, ctx)
      if (!found) return
      const claim = entryIn(found).due <= Date.now() ? await this.claim(found, new Set()) : undefined
      if (claim) yield claim
      else await this.#wakeup.after(rings, POLL_MS, ctx.signal)
    }
  }

  keep({ id, fence }: RunClaim, ctx: CallContext): Promise<void> {
    return this.#leases.keep(id, fence, ctx)
  }

  async leave({ id, fence }: RunClaim, how: ReturnedRun | 'ended', ctx: CallContext): Promise<void> {
    // an ended run needs no hurry unless it holds a group slot: delete it together with the next write
    if (how === 'ended' && !this.#leases.hasSlot(id)) await this.#lull.wait()
    let next: QueueEntry | undefined
    try {
      if (how === 'ended') await this.#store.batch([{ op: 'delete', collection: QUEUE, key: id }], { fence }, ctx)
      else next = await this.#update(id, place => place && asleep(place, how), { fence }, ctx)
    } finally {
      const freesPlace = await this.#leases.free(id, fence, ctx)
      // wake others only if there can be work
      if (how !== 'ended' || freesPlace) await this.#ready(id, next)
    }
  }

  async wake(id: string, ctx: CallContext): Promise<void> {
    await this.#ready(id, await this.#update(id, woken, {}, ctx))
  }

  async countDue(ctx: CallContext): Promise<number> {
    const pages = (['ready', 'asleep'] as const).map(state =>
      this.#store.range(QUEUE, { index: 'by_state', equals: [state], to: Date.now() + 1, limit: MOST_DUE }, ctx)
    )
    const entries = (await Promise.all(pages)).flatMap(({ records }) => records.map(entryIn))
    return Math.min(MOST_DUE, entries.filter(({ group, affinity }) => !group && affinity === undefined).length)
  }

  /** Reports a run that waits now, if there is one. */
  async #ready(id: string, entry: QueueEntry | undefined): Promise<void> {
    if (entry && entry.state !== 'held') await this.#announce?.(id, entry)
    this.#wakeup.ring()
  }

  /** Makes the runs of an ended process due. */
  async gone(holder: string, ctx: CallContext): Promise<void> {
    for await (const { key, value } of this.#inState('held', NEVER, ctx)) {
      const place = value as unknown as QueueEntry
      if (!place.holder?.startsWith(holder)) continue
      const entry = await this.#update(key, item => item && { ...item, due: Date.now() }, {}, ctx)
      if (entry) await this.#announce?.(key, entry)
    }
    this.#wakeup.ring()
  }

  /** The entry of a run. */
  async entry(id: string, ctx: CallContext): Promise<StoreRecord | undefined> {
    return this.#store.get(QUEUE, id, ctx)
  }

  /** Runs that were due before these times: ready, asleep, and held ones whose holder can be gone. */
  async *due(
    { waiting, held }: { readonly waiting: number; readonly held: number },
    ctx: CallContext
  ): AsyncGenerator<StoreRecord, void> {
    yield* this.#inState('ready', waiting, ctx)
    yield* this.#inState('asleep', waiting, ctx)
    yield* this.#inState('held', held, ctx)
  }

  async *#inState(state: QueueEntry['state'], to: number, ctx: CallContext): AsyncGenerator<StoreRecord, void> {
    for (let cursor: string | undefined; ; ) {
      const query = { index: 'by_state', equals: [state], to, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }
      const page = await this.#store.range(QUEUE, query, ctx)
      yield* page.records
      cursor = page.next
      if (cursor === undefined) return
    }
  }

  /** Claims a due run; undefined if another process has it, if it is bound to another node, or if its group is full (added to `full`). */
  async claim(found: StoreRecord, full: Set<string>): Promise<RunClaim | undefined> {
    const ctx = this.#lasting
    const { group, affinity } = entryIn(found)
    if (!this.#isHere({ affinity })) return undefined
    if (group && !full.has(group.name) && !(await this.#leases.enter(found.key, group, ctx))) full.add(group.name)
    if (group && full.has(group.name)) {
      await this.lookLater(found, ctx)
      return undefined
    }
    const fence = await this.#leases.run(found.key, ctx)
    if (fence && (await this.#hold(found, fence, ctx))) return { id: found.key, fence }
    if (fence) await this.#leases.free(found.key, fence, ctx)
    else await Promise.all([this.#leases.leave(found.key, ctx), this.lookLater(found, ctx)])
    return undefined
  }

  /** Whether workers of this node may execute the run. */
  #isHere({ affinity }: Pick<QueueEntry, 'affinity'>): boolean {
    return affinity === undefined || affinity === this.#node
  }

  /** Postpones the next check of a held run. */
  async lookLater(found: StoreRecord, ctx: CallContext): Promise<void> {
    const place = entryIn(found)
    if (place.state !== 'held' || place.due > Date.now()) return
    await this.#write(found.key, { ...place, due: Date.now() + this.#heldMs }, { ifVersion: found.version }, ctx).catch(
      onlyConflict
    )
  }

  /** Marks a run as held. Returns false if another process was faster. */
  async #hold(found: StoreRecord, fence: Fence, ctx: CallContext): Promise<boolean> {
    const { woken: _, ...place } = entryIn(found)
    try {
      await this.#write(found.key, this.#held(place), { ifVersion: found.version, fence }, ctx)
      return true
    } catch (error) {
      onlyConflict(error)
      return false
    }
  }

  #held(place: QueueEntry): QueueEntry {
    return { ...place, state: 'held', due: Date.now() + this.#heldMs, holder: this.#holder }
  }

  /**
   * Changes the entry of a run, and retries after concurrent changes. Does nothing if `change` returns undefined. Returns the new entry.
   * Throws STORE_FENCED.
   */
  async #update(
    id: string,
    change: (place: QueueEntry | undefined) => QueueEntry | undefined,
    { fence }: { readonly fence?: Fence },
    ctx: CallContext
  ): Promise<QueueEntry | undefined> {
    for (;;) {
      const found = await this.#store.get(QUEUE, id, ctx)
      const next = change(found && entryIn(found))
      if (!next) return undefined
      try {
        await this.#write(id, next, { ifVersion: found?.version ?? 0, ...(fence ? { fence } : {}) }, ctx)
        return next
      } catch (error) {
        onlyConflict(error)
      }
    }
  }

  async #write(
    key: string,
    place: QueueEntry,
    { ifVersion, fence }: { readonly ifVersion?: number; readonly fence?: Fence },
    ctx: CallContext
  ): Promise<void> {
    const put = {
      op: 'put' as const,
      collection: QUEUE,
      key,
      value: place as unknown as Json,
      ...(ifVersion === undefined ? {} : { ifVersion }),
    }
    await this.#store.batch([put], fence ? { fence } : {}, ctx)
  }
}

/** The entry in its record. */
export const entryIn = ({ value }: StoreRecord) => value as unknown as QueueEntry

/** The fields of an entry that come from the run. */
const lastingOf = ({ group, affinity }: Pick<QueuedRun, 'group' | 'affinity'>) => ({
  ...(group ? { group } : {}),
  ...(affinity === undefined ? {} : { affinity }),
})

const entryOf = (run: QueuedRun): QueueEntry => ({ state: 'ready', due: Math.min(run.due ?? NEVER, NEVER), ...lastingOf(run) })

/** A change of a held run takes effect when its holder returns it. */
function markWoken(held: QueueEntry, run: QueuedRun): QueueEntry {
  const { group: _group, affinity: _affinity, ...place } = held
  return { ...place, ...lastingOf(run), woken: true }
}

/** A run with new notices becomes ready instead of sleeping. */
function asleep({ woken: news, ...entry }: QueueEntry, { due, affinity }: ReturnedRun): QueueEntry {
  const place = lastingOf({ ...entry, ...(affinity === undefined ? {} : { affinity }) })
  return news ? { ...place, state: 'ready', due: Date.now() } : { ...place, state: 'asleep', due: due ?? NEVER }
}

function woken(place: QueueEntry | undefined): QueueEntry | undefined {
  if (place?.state === 'held') return place.woken ? undefined : { ...place, woken: true }
  return place && { ...place, state: 'ready', due: Math.min(place.due, Date.now()) }
}
