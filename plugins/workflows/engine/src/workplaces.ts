import type { CallContext, Log } from '@svc/core'
import type { NodeBus, RunQueue, Store, StoreOp, StoreRecord } from '@svc/core/contracts'
import { keepLease } from '@svc/storage-kit'
import { onlyConflict } from '@svc/storage-kit/records'
import type { History } from './history.ts'
import { ABSENCES, groupOf, PLACES, RUNS, type RunRecord } from './space.ts'

export interface WorkplacesOptions {
  readonly store: Store
  readonly queue: RunQueue
  /** The nodes of the cluster. Undefined in a command. */
  readonly bus: Pick<NodeBus, 'members'> | undefined
  /** Whether all processes that use the store have the same files, so that no run is bound. */
  readonly isShared: boolean
  /** The node of this worker. */
  readonly node: string
  /** The name of this worker. */
  readonly worker: string
  /** How long runs wait for a node that is gone. */
  readonly waitMs: number
  readonly log: Log
  readonly lasting: CallContext
}

/** Where the files of a run are: here, on another node, on one that is gone for a short time, or lost. */
export type Whereabouts = 'here' | 'elsewhere' | 'absent' | 'lost'

/** How often the nodes of bound runs are checked, and the delay after a node has joined or left. */
const [EVERY_MS, SOON_MS] = [60_000, 200]
const [PAGE, LEASE_MS] = [200, 60_000]
const LEASE = 'workflows.workplaces'

/**
 * The runs that are bound to the files of a node. The queue gives them to that node only. If the node is gone for too long, they are
 * added to the queue without it: the worker that takes them fails them.
 */
export class Workplaces {
  readonly #parts: WorkplacesOptions
  #timer: NodeJS.Timeout | undefined
  #isEnded = false

  constructor(parts: WorkplacesOptions) {
    this.#parts = parts
  }

  /** The node to which runs of this worker are bound. Undefined: none are. */
  get node(): string | undefined {
    const { isShared, node } = this.#parts
    return isShared ? undefined : node
  }

  /** Where the files of a node are. */
  async whereabouts(node: string): Promise<Whereabouts> {
    const { bus, lasting } = this.#parts
    if (this.node === undefined || node === this.node) return 'here'
    if (!bus || (await this.#present(bus)).has(node)) return 'elsewhere'
    return (await this.#waitOf(node, lasting)) > 0 ? 'absent' : 'lost'
  }

  /** Notes a bound run that this worker returns to the queue, before the queue keeps it for the node. */
  async note(id: string, node: string): Promise<void> {
    const { store, lasting } = this.#parts
    await store.batch([{ op: 'put', collection: PLACES, key: placeOf(node, id), value: { at: Date.now() } }], {}, lasting)
  }

  begin(): void {
    if (this.#parts.bus) this.#plan(SOON_MS)
  }
  end(): void {
    this.#isEnded = true
    clearTimeout(this.#timer)
  }
  /** A node has joined or left. */
  changed(): void {
    if (!this.#isEnded && this.#timer) this.#plan(SOON_MS)
  }

  #plan(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#round(), ms).unref()
  }

  async #round(): Promise<void> {
    const { lasting, log } = this.#parts
    let next = EVERY_MS
    try {
      next = Math.min(next, await this.check(lasting))
    } catch (err) {
      if (!lasting.signal.aborted) log.debug({ err }, 'failed to check the nodes of bound runs')
    }
    if (!this.#isEnded && !lasting.signal.aborted) this.#plan(Math.max(SOON_MS, next))
  }

  /** Releases the runs of nodes that are gone for too long. Returns the milliseconds until the next node is. */
  async check(ctx: CallContext): Promise<number> {
    const bound = await this.#bound(ctx)
    if (bound.size === 0) return EVERY_MS
    const { bus, isShared } = this.#parts
    if (!bus) return EVERY_MS
    const present = await this.#present(bus)
    await this.#forget(present, ctx)
    let next = EVERY_MS
    for (const [node, places] of bound) {
      if (present.has(node) && !isShared) continue
      const left = isShared ? 0 : await this.#waitOf(node, ctx)
      if (left > 0) next = Math.min(next, left)
      else await this.#release(node, places, ctx)
    }
    return next
  }

  /** The records of bound runs that no worker executes, by node. */
  async #bound(ctx: CallContext): Promise<ReadonlyMap<string, readonly StoreRecord[]>> {
    const places: StoreRecord[] = []
    for (let cursor: string | undefined; ; ) {
      const query = { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }
      const { records, next } = await this.#parts.store.range(PLACES, query, ctx)
      places.push(...records)
      if (next === undefined) return Map.groupBy(places, ({ key }) => key.slice(0, key.lastIndexOf('/')))
      cursor = next
    }
  }

  async #present(bus: Pick<NodeBus, 'members'>): Promise<ReadonlySet<string>> {
    const { node, lasting } = this.#parts
    const members = await bus.members(lasting)
    return new Set([node, ...members.map(member => member.node)])
  }

  /** Milliseconds that runs still wait for a node that is gone, by the clock of the store. */
  async #waitOf(node: string, ctx: CallContext): Promise<number> {
    const { store, waitMs } = this.#parts
    const now = Date.now() + (await store.probe(ctx)).clockOffsetMs
    const found = await store.get(ABSENCES, node, ctx)
    const { since } = (found?.value ?? { since: now }) as { readonly since: number }
    if (!found)
      await store
        .batch([{ op: 'put', collection: ABSENCES, key: node, value: { since }, ifVersion: 0 }], {}, ctx)
        .catch(onlyConflict)
    return since + waitMs - now
  }

  /** Forgets that nodes were gone that are back. */
  async #forget(present: ReadonlySet<string>, ctx: CallContext): Promise<void> {
    const { store } = this.#parts
    const { records } = await store.range(ABSENCES, { limit: PAGE }, ctx)
    const back = records.filter(({ key }) => present.has(key))
    if (back.length > 0)
      await store.batch(
        back.map(({ key }) => ({ op: 'delete', collection: ABSENCES, key })),
        {},
        ctx
      )
  }

  /** Lets any worker take the runs of a node. One worker at a time does it. */
  async #release(node: string, places: readonly StoreRecord[], ctx: CallContext): Promise<void> {
    const { store, queue, worker, isShared, log } = this.#parts
    const request = { holder: `${worker}/workplaces`, ttlMs: LEASE_MS, waitMs: 0 }
    await using kept = await keepLease(store, `${LEASE}/${node}`, request, ctx)
    let count = 0
    for (const { key, version } of places) {
      const id = key.slice(node.length + 1)
      const record = (await store.get(RUNS, id, kept.ctx))?.value as unknown as RunRecord | undefined
      if (record?.status === 'running') {
        await queue.put({ id, due: Date.now(), ...groupOf(record) }, { claim: false }, kept.ctx)
        count += 1
      }
      // the node is back and has returned the run again meanwhile
      await store.batch([{ ...unbound(node, id), ifVersion: version }], {}, kept.ctx).catch(onlyConflict)
    }
    if (count > 0 && !isShared) log.warn({ node, count }, 'a node is gone with the files of workflow runs; the runs fail')
  }
}

const placeOf = (node: string, id: string) => `${node}/${id}`

const unbound = (node: string, id: string) => ({ op: 'delete' as const, collection: PLACES, key: placeOf(node, id) })

/** The operations at the end of a run: it is not looked for any more when its node is gone. */
export const unboundOps = (id: string, { bound: { node } }: History): StoreOp[] => (node === undefined ? [] : [unbound(node, id)])

/** The record of a run with the node to which it is bound. */
export const withAffinity = (record: RunRecord, { bound: { node } }: History): RunRecord =>
  node === undefined ? record : { ...record, affinity: node }
