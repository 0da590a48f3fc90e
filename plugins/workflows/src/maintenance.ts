import type { Log, Use } from '@svc/core'
import type { RunQueue, Store, StoreOp } from '@svc/core/contracts'
import { INBOX, KEYS, LOG, RUNS, type RunRecord } from './space.ts'

export interface MaintenanceParts {
  readonly store: Store
  readonly queue: RunQueue
  readonly retentionMs: number
  readonly log: Log
  readonly lasting: Use
}

const [EVERY_MS, SOON_MS] = [10 * 60_000, 30_000]
const [PAGE, MOST] = [200, 5_000]
/** How long idempotency keys are kept. */
const KEY_MS = 86_400_000
/** A run that nobody has written for so long may have been lost by its queue: it is put in again. */
const QUIET_MS = 5 * 60_000
const LEASE = 'workflows.maintenance'

/** Deletes what is over, and looks that no run is forgotten: one worker of all does, now and then. */
export class Maintenance {
  readonly #parts: MaintenanceParts
  #timer: NodeJS.Timeout | undefined

  constructor(parts: MaintenanceParts) {
    this.#parts = parts
  }

  begin(): void {
    this.#timer = setTimeout(() => void this.#round(), SOON_MS).unref()
  }
  end(): void {
    clearTimeout(this.#timer)
  }

  async #round(): Promise<void> {
    const { store, lasting, log } = this.#parts
    try {
      const holder = `maintenance/${process.pid}/${crypto.randomUUID()}`
      const { lease, fence } = await store.acquire(LEASE, { holder, ttlMs: EVERY_MS / 2, waitMs: 0 }, lasting)
      await this.run().finally(() => store.release({ lease, fence }, lasting))
    } catch (err) {
      if (!lasting.signal.aborted) log.debug({ err }, 'workflow runs were not looked through')
    }
    if (!lasting.signal.aborted) this.#timer = setTimeout(() => void this.#round(), EVERY_MS).unref()
  }

  /** One round. */
  async run(): Promise<void> {
    const over = Date.now() - this.#parts.retentionMs
    for (const status of ['completed', 'failed']) await this.#delete(RUNS, { index: 'by_status', equals: [status], to: over }, opsOfRun)
    await this.#delete(KEYS, { index: 'by_time', to: Date.now() - KEY_MS }, key => [{ op: 'delete', collection: KEYS, key }])
    await this.#requeue()
  }

  async #delete(collection: string, range: { index: string; equals?: readonly string[]; to: number }, opsOf: (key: string) => StoreOp[]): Promise<void> {
    const { store, lasting } = this.#parts
    for (let done = 0; done < MOST; ) {
      const { records, next } = await store.range(collection, { ...range, limit: PAGE }, lasting)
      if (records.length === 0) return
      await store.batch(records.flatMap(({ key }) => opsOf(key)), {}, lasting)
      done += records.length
      if (next === undefined) return
    }
  }

  /** Waking a run that is worked on, or waits, changes nothing. */
  async #requeue(): Promise<void> {
    const { store, queue, lasting } = this.#parts
    const quiet = { index: 'by_status', equals: ['running'], to: Date.now() - QUIET_MS, limit: PAGE }
    const { records } = await store.range(RUNS, quiet, lasting)
    for (const { key, value } of records)
      if ((value as unknown as RunRecord).waiting.length === 0) await queue.wake(key, lasting)
  }
}

const opsOfRun = (id: string): StoreOp[] => [
  { op: 'delete', collection: RUNS, key: id },
  { op: 'drop', log: LOG, id },
  { op: 'delete', collection: INBOX, key: `${id}/c` },
]
