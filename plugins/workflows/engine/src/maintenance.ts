import type { Log, CallContext } from '@svc/core'
import type { RunQueue, Store, StoreOp } from '@svc/core/contracts'
import { keepLease } from '@svc/storage-kit'
import { TOUCH_MS } from './definitions.ts'
import { DEFINITIONS, groupOf, INBOX, KEYS, removalOf, RUNS, type RunRecord } from './space.ts'
import type { WorkflowPauses } from './pauses.ts'

export interface RunMaintenanceOptions {
  readonly store: Store
  readonly queue: RunQueue
  readonly pauses: WorkflowPauses
  /** The name of this worker. */
  readonly worker: string
  readonly retentionMs: number
  readonly maxAgeMs: number
  readonly log: Log
  readonly lasting: CallContext
}

const [EVERY_MS, SOON_MS] = [10 * 60_000, 30_000]
const [PAGE, MOST] = [200, 5_000]
/** How long idempotency keys are kept, and how long a definition can be in use after its last write. */
const KEY_MS = TOUCH_MS
/** The queue can have lost a run without a write for this time, so the run is queued again. */
const QUIET_MS = 5 * 60_000
const LEASE = 'workflows.maintenance'
const LEASE_MS = 60_000

/** Deletes expired data and queues forgotten runs again. Only one worker does it at a time. */
export class RunMaintenance {
  readonly #parts: RunMaintenanceOptions
  #timer: NodeJS.Timeout | undefined

  constructor(parts: RunMaintenanceOptions) {
    this.#parts = parts
  }

  begin(): void {
    this.#timer = setTimeout(() => void this.#round(), SOON_MS).unref()
    void this.deliver().catch((err: unknown) => this.#parts.log.debug({ err }, 'failed to deliver the notices in run inboxes'))
  }
  end(): void {
    clearTimeout(this.#timer)
  }

  async #round(): Promise<void> {
    const { store, worker, lasting, log } = this.#parts
    try {
      // the worker's name: after its death, the lease is released with its others
      const request = { holder: `${worker}/maintenance`, ttlMs: LEASE_MS, waitMs: 0 }
      await using kept = await keepLease(store, LEASE, request, lasting)
      await this.run(kept.ctx)
    } catch (err) {
      if (!lasting.signal.aborted) log.debug({ err }, 'failed to run the maintenance of workflow runs')
    }
    if (!lasting.signal.aborted) this.#timer = setTimeout(() => void this.#round(), EVERY_MS).unref()
  }

  /** Runs the maintenance once. */
  async run(ctx: CallContext = this.#parts.lasting): Promise<void> {
    const { store, pauses, retentionMs, maxAgeMs } = this.#parts
    const over = Date.now() - retentionMs
    for (const status of ['completed', 'failed'])
      await this.#delete(RUNS, { index: 'by_status', equals: [status], to: over }, id => removalOf(store, id, ctx), ctx)
    await this.#delete(
      KEYS,
      { index: 'by_time', to: Date.now() - KEY_MS },
      async key => [{ op: 'delete', collection: KEYS, key }],
      ctx
    )
    // a run can start a day after the last write, take its time, be kept, and be retried then
    const unused = over - maxAgeMs - 2 * TOUCH_MS
    await this.#delete(
      DEFINITIONS,
      { index: 'by_time', to: unused },
      async key => [{ op: 'delete', collection: DEFINITIONS, key }],
      ctx
    )
    await this.deliver(ctx)
    await pauses.release(ctx)
    await this.#requeue(ctx)
  }

  async #delete(
    collection: string,
    range: { index: string; equals?: readonly string[]; to: number },
    opsOf: (key: string) => Promise<StoreOp[]>,
    ctx: CallContext
  ): Promise<void> {
    const { store } = this.#parts
    for (let done = 0; done < MOST; ) {
      const { records, next } = await store.range(collection, { ...range, limit: PAGE }, ctx)
      if (records.length === 0) return
      const ops = await Promise.all(records.map(({ key }) => opsOf(key)))
      await store.batch(ops.flat().slice(0, MOST_OPS), {}, ctx)
      done += records.length
      if (next === undefined) return
    }
  }

  /** Wakes runs with notices, because the sender can have crashed before it woke the run. */
  async deliver(ctx: CallContext = this.#parts.lasting): Promise<void> {
    const { store, queue } = this.#parts
    const ids = new Set<string>()
    for (let cursor: string | undefined; ids.size < MOST; ) {
      const { records, next } = await store.range(INBOX, { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }, ctx)
      for (const { key } of records) ids.add(key.split('/', 1)[0]!)
      if (next === undefined) break
      cursor = next
    }
    for (const id of ids) await queue.wake(id, ctx)
  }

  /** Queues runs again whose process crashed before it queued them. A run in progress or waiting is only checked once more. */
  async #requeue(ctx: CallContext): Promise<void> {
    const { store, queue } = this.#parts
    const quiet = { index: 'by_status', equals: ['running'], to: Date.now() - QUIET_MS, limit: PAGE }
    for (let cursor: string | undefined; ; ) {
      const { records, next } = await store.range(RUNS, { ...quiet, ...(cursor === undefined ? {} : { cursor }) }, ctx)
      for (const { key, value } of records) {
        const record = value as unknown as RunRecord
        if (record.waiting.length === 0 && record.pausedAt === undefined)
          await queue.put({ id: key, due: Date.now(), ...groupOf(record) }, { claim: false }, ctx)
      }
      if (next === undefined) return
      cursor = next
    }
  }
}

/** Maximum number of operations in a batch. */
const MOST_OPS = 9_000
