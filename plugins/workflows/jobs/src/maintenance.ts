import type { CallContext, Log } from '@svc/core'
import type { Store } from '@svc/core/contracts'
import { tryAcquire } from '@svc/storage-kit/records'
import { deleteOps, type JobRecord, JOBS } from './space.ts'

export interface MaintenanceOptions {
  readonly store: Store
  readonly holder: string
  readonly log: Log
  readonly lasting: CallContext
}

const [EVERY_MS, SOON_MS] = [10 * 60_000, 30_000]
const [PAGE, MOST] = [200, 20_000]
const LEASE = 'jobs.maintenance'

/** Deletes expired jobs. Only one worker does it at a time. */
export class Maintenance {
  readonly #options: MaintenanceOptions
  #timer: NodeJS.Timeout | undefined

  constructor(options: MaintenanceOptions) {
    this.#options = options
  }

  begin(): void {
    this.#timer = setTimeout(() => void this.#round(), SOON_MS).unref()
  }

  end(): void {
    clearTimeout(this.#timer)
  }

  async #round(): Promise<void> {
    const { store, holder, lasting, log } = this.#options
    try {
      const request = { holder: `${holder}${crypto.randomUUID()}`, ttlMs: EVERY_MS / 2 }
      const lease = await tryAcquire(store, LEASE, request, lasting)
      if (lease) await this.run().finally(() => store.release({ lease: lease.lease, fence: lease.fence }, lasting))
    } catch (err) {
      if (!lasting.signal.aborted) log.debug({ err }, 'failed to delete expired jobs')
    }
    if (!lasting.signal.aborted) this.#timer = setTimeout(() => void this.#round(), EVERY_MS).unref()
  }

  /** Deletes the jobs that have expired. */
  async run(): Promise<void> {
    const { store, lasting } = this.#options
    for (let done = 0; done < MOST; ) {
      const query = { index: 'by_expiry', from: 0, to: Date.now(), limit: PAGE }
      const { records } = await store.range(JOBS, query, lasting)
      if (records.length === 0) return
      const ops = records.flatMap(({ key, value, version }) => deleteOps(key, value as unknown as JobRecord, version))
      await store.batch(ops, {}, lasting)
      done += records.length
    }
  }
}
