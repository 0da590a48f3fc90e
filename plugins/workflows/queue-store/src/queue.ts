import { codeOf, type CallContext } from '@svc/core'
import type { Fence, Json, QueuedRun, RunClaim, RunQueue, Store, StoreRecord } from '@svc/core/contracts'
import { Leases, type Place, QUEUE } from './leases.ts'

/** Wakes those who wait for something to do. */
class Wakeup {
  readonly #waiting = new Set<() => void>()
  #rings = 0

  /** How often it has rung: whoever looks for work notes it before, and so misses no ring while he looks. */
  get rings(): number {
    return this.#rings
  }

  ring(): void {
    this.#rings += 1
    for (const wake of this.#waiting) wake()
  }

  /** Answers when it has rung more often than that, after so long, or with the signal. */
  async after(rings: number, ms: number, signal: AbortSignal): Promise<void> {
    if (this.#rings !== rings || signal.aborted) return
    const rung = Promise.withResolvers<void>()
    const wake = () => rung.resolve()
    const timer = setTimeout(wake, ms)
    this.#waiting.add(wake)
    signal.addEventListener('abort', wake, { once: true })
    try {
      await rung.promise
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(wake)
      signal.removeEventListener('abort', wake)
    }
  }
}

/** So long at the most. */
const LULL_MS = 5

/** A short wait that ends early when something is done anyway: what waited for it shares its commit. */
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

export interface QueueParts {
  readonly store: Store
  /** What all leases of this process begin with. */
  readonly holder: string
  /** Lasts as long as the process works: a claim that was begun is not left half made. */
  readonly lasting: CallContext
}

/** What is held is looked at again after so long: its holder may be gone. */
const HELD_MS = 60_000
/** What other processes put into the queue is seen after so long. */
const POLL_MS = 1_000
/** A new process looks at all that is held for so long. */
const SETTLE_MS = 5_000
const PAGE = 100
const NEVER = Number.MAX_SAFE_INTEGER

/** The queue of runs in the store: a record a run, and a lease for whoever works on it. */
export class StoreQueue implements RunQueue {
  readonly #store: Store
  readonly #holder: string
  readonly #lasting: CallContext
  readonly #leases: Leases
  readonly #bell = new Wakeup()
  readonly #lull = new IdleGate()

  constructor({ store, holder, lasting }: QueueParts) {
    this.#lasting = lasting
    this.#store = store
    this.#holder = holder
    this.#leases = new Leases(store, holder)
  }

  async put(run: QueuedRun, { claim }: { readonly claim: boolean }, ctx: CallContext): Promise<RunClaim | undefined> {
    this.#lull.end()
    const isFree = claim && (!run.group || (await this.#leases.enter(run.id, run.group, ctx)))
    if (!isFree) {
      await this.#wait(run, ctx)
      return undefined
    }
    const [fence] = await Promise.all([this.#leases.run(run.id, ctx), this.#write(run.id, this.#held(placeOf(run)), {}, ctx)])
    if (fence) return { id: run.id, fence }
    await this.#leases.leave(run.id, ctx)
    return undefined
  }

  /** It waits for somebody; who works on it now is told, and goes on. */
  async #wait(run: QueuedRun, ctx: CallContext): Promise<void> {
    await this.#update(run.id, place => (place?.state === 'held' ? toPublicError(place, run) : placeOf(run)), {}, ctx)
    this.#bell.ring()
  }

  async *take(ctx: CallContext): AsyncGenerator<RunClaim, void> {
    // whoever held something when this process began may be gone; their leases are freed about now
    const settled = Date.now() + SETTLE_MS
    for (let lookAt = 0; !ctx.signal.aborted; ) {
      const { rings } = this.#bell
      const now = Date.now()
      const until = now < settled && now >= lookAt ? NEVER : now + 1
      if (until === NEVER) lookAt = now + POLL_MS
      const full = new Set<string>()
      let count = 0
      for await (const found of this.#due(until, ctx)) {
        const claim = ctx.signal.aborted ? undefined : await this.#claim(found, full, this.#lasting)
        if (!claim) continue
        count += 1
        yield claim
        if (ctx.signal.aborted) return
      }
      if (count === 0) await this.#bell.after(rings, POLL_MS, ctx.signal)
    }
  }

  async *takeOne(id: string, ctx: CallContext): AsyncGenerator<RunClaim, void> {
    while (!ctx.signal.aborted) {
      const { rings } = this.#bell
      const found = await this.#store.get(QUEUE, id, ctx)
      if (!found) return
      const claim = placeIn(found).due <= Date.now() ? await this.#claim(found, new Set(), this.#lasting) : undefined
      if (claim) yield claim
      else await this.#bell.after(rings, POLL_MS, ctx.signal)
    }
  }

  keep({ id, fence }: RunClaim, ctx: CallContext): Promise<void> {
    return this.#leases.keep(id, fence, ctx)
  }

  async leave({ id, fence }: RunClaim, how: { readonly due: number | null } | 'ended', ctx: CallContext): Promise<void> {
    // nobody waits for a run that has ended, unless for its place: it goes with what is written next
    if (how === 'ended' && !this.#leases.hasPlace(id)) await this.#lull.wait()
    try {
      if (how === 'ended') await this.#store.batch([{ op: 'delete', collection: QUEUE, key: id }], { fence }, ctx)
      else await this.#update(id, place => place && asleep(place, how.due), { fence }, ctx)
    } finally {
      const freesPlace = await this.#leases.free(id, fence, ctx)
      // others look for work only where there may be some
      if (how !== 'ended' || freesPlace) this.#bell.ring()
    }
  }

  async wake(id: string, ctx: CallContext): Promise<void> {
    await this.#update(id, woken, {}, ctx)
    this.#bell.ring()
  }

  /** A process has ended, and its leases are free. */
  async gone(holder: string, ctx: CallContext): Promise<void> {
    for await (const { key, value } of this.#inState('held', NEVER, ctx)) {
      const place = value as unknown as Place
      if (place.holder?.startsWith(holder)) await this.#update(key, one => one && { ...one, due: Date.now() }, {}, ctx)
    }
    this.#bell.ring()
  }

  /** Runs whose time has come: those that wait, and those whose holder may be gone. */
  async *#due(heldUntil: number, ctx: CallContext): AsyncGenerator<StoreRecord, void> {
    yield* this.#inState('ready', Date.now() + 1, ctx)
    yield* this.#inState('asleep', Date.now() + 1, ctx)
    yield* this.#inState('held', heldUntil, ctx)
  }

  async *#inState(state: Place['state'], to: number, ctx: CallContext): AsyncGenerator<StoreRecord, void> {
    for (let cursor: string | undefined; ; ) {
      const query = { index: 'by_state', equals: [state], to, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }
      const page = await this.#store.range(QUEUE, query, ctx)
      yield* page.records
      cursor = page.next
      if (cursor === undefined) return
    }
  }

  async #claim(found: StoreRecord, full: Set<string>, ctx: CallContext): Promise<RunClaim | undefined> {
    const { group } = placeIn(found)
    if (group && !full.has(group.name) && !(await this.#leases.enter(found.key, group, ctx))) full.add(group.name)
    if (group && full.has(group.name)) {
      await this.#lookLater(found, ctx)
      return undefined
    }
    const fence = await this.#leases.run(found.key, ctx)
    if (fence && (await this.#hold(found, fence, ctx))) return { id: found.key, fence }
    if (fence) await this.#leases.free(found.key, fence, ctx)
    else await Promise.all([this.#leases.leave(found.key, ctx), this.#lookLater(found, ctx)])
    return undefined
  }

  /** Somebody works on it: it is looked at again later. */
  async #lookLater(found: StoreRecord, ctx: CallContext): Promise<void> {
    const place = placeIn(found)
    if (place.state !== 'held' || place.due > Date.now()) return
    await this.#write(found.key, { ...place, due: Date.now() + HELD_MS }, { ifVersion: found.version }, ctx).catch(onlyConflict)
  }

  /** False where it is another's by now. */
  async #hold(found: StoreRecord, fence: Fence, ctx: CallContext): Promise<boolean> {
    const { woken: _, ...place } = placeIn(found)
    try {
      await this.#write(found.key, this.#held(place), { ifVersion: found.version, fence }, ctx)
      return true
    } catch (error) {
      onlyConflict(error)
      return false
    }
  }

  #held(place: Place): Place {
    return { ...place, state: 'held', due: Date.now() + HELD_MS, holder: this.#holder }
  }

  /** Changes the place of a run, whoever else does; nothing where `change` answers nothing. Throws STORE_FENCED. */
  async #update(
    id: string,
    change: (place: Place | undefined) => Place | undefined,
    { fence }: { readonly fence?: Fence },
    ctx: CallContext
  ): Promise<void> {
    for (;;) {
      const found = await this.#store.get(QUEUE, id, ctx)
      const next = change(found && placeIn(found))
      if (!next) return
      try {
        return await this.#write(id, next, { ifVersion: found?.version ?? 0, ...(fence ? { fence } : {}) }, ctx)
      } catch (error) {
        onlyConflict(error)
      }
    }
  }

  async #write(
    key: string,
    place: Place,
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

const placeIn = ({ value }: StoreRecord) => value as unknown as Place

const placeOf = ({ due, group }: QueuedRun): Place => ({ state: 'ready', due: due ?? NEVER, ...(group ? { group } : {}) })

/** What is said of a run while somebody works on it counts once he leaves it. */
function toPublicError(held: Place, { group }: QueuedRun): Place {
  const { group: _, ...place } = held
  return { ...place, ...(group ? { group } : {}), woken: true }
}

/** News that came meanwhile is not slept over. */
function asleep({ woken: news, group }: Place, due: number | null): Place {
  const place = group ? { group } : {}
  return news ? { ...place, state: 'ready', due: Date.now() } : { ...place, state: 'asleep', due: due ?? NEVER }
}

function woken(place: Place | undefined): Place | undefined {
  if (place?.state === 'held') return place.woken ? undefined : { ...place, woken: true }
  return place && { ...place, state: 'ready', due: Math.min(place.due, Date.now()) }
}

/** Another was faster. */
function onlyConflict(error: unknown): void {
  if (codeOf(error) !== 'STORE_CONFLICT') throw error
}
