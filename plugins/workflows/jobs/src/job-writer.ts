import { codeOf, type CallContext } from '@svc/core'
import type { Fence, JobLogEntry, Json, Store, StoreOp } from '@svc/core/contracts'
import { attemptOver } from './errors.ts'
import { type JobRecord, JOBS, LOG, putJob, segmentOf, SEGMENT, streamOf } from './space.ts'

/** How long log entries and progress are collected before they are written. */
const FLUSH_MS = 500
/** Number of collected entries after which the job waits for the write. */
const MOST_PENDING = 200

export interface JobWriterOptions {
  readonly store: Store
  readonly id: string
  readonly fence: Fence
  readonly lasting: CallContext
  /** Called when the stored record asks this worker to cancel the job. */
  readonly onCancel: () => void
  /** Called when another worker has the job. */
  readonly onLost: () => void
}

/** Writes the record and the log of a running job, one batch after the other, each with the fence of the job. */
export class JobWriter {
  readonly #options: JobWriterOptions
  #record: JobRecord
  #version: number
  #tail: Promise<unknown> = Promise.resolve()
  #pending: JobLogEntry[] = []
  #progress: JobRecord['progress']
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: JobWriterOptions, record: JobRecord, version: number) {
    this.#options = options
    this.#record = record
    this.#version = version
  }

  get record(): JobRecord {
    return this.#record
  }

  report(progress: NonNullable<JobRecord['progress']>): void {
    this.#progress = progress
    this.#flushSoon()
  }

  /** Resolves at once, or after a write when many entries wait. */
  async log(entry: JobLogEntry): Promise<void> {
    this.#pending.push(entry)
    if (this.#pending.length >= MOST_PENDING) await this.write(record => record)
    else this.#flushSoon()
  }

  #flushSoon(): void {
    if (this.#isClosed) throw attemptOver()
    this.#timer ??= setTimeout(() => void this.write(record => record).catch(() => {}), FLUSH_MS)
  }

  /** Writes a change of the record with further operations, the log and the progress. Throws STORE_FENCED when the job is lost. */
  write(change: (record: JobRecord) => JobRecord, more: readonly StoreOp[] = []): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#isClosed) return Promise.reject(attemptOver())
    const written = this.#tail.then(() => this.#write(change, more))
    this.#tail = written.catch(() => {})
    return written
  }

  async #write(change: (record: JobRecord) => JobRecord, more: readonly StoreOp[]): Promise<void> {
    const { id, fence, lasting, store, onLost } = this.#options
    const [entries, progress] = [this.#pending, this.#progress]
    this.#pending = []
    this.#progress = undefined
    try {
      for (;;) {
        const { ops, logged } = logOps(id, this.#record.logged, entries)
        const next = { ...change({ ...this.#record, ...(progress ? { progress } : {}) }), logged }
        try {
          const { results } = await store.batch([putJob(id, next, this.#version), ...more, ...ops], { fence }, lasting)
          this.#record = next
          this.#version = results[0]!
          return
        } catch (error) {
          if (codeOf(error) !== 'STORE_CONFLICT') throw error
          await this.refresh()
        }
      }
    } catch (error) {
      if (codeOf(error) === 'STORE_FENCED') onLost()
      throw error
    }
  }

  /** Reads the record again: a caller can have asked to cancel the job. Throws when the job is lost. */
  async refresh(): Promise<void> {
    const { id, store, lasting, onCancel, onLost } = this.#options
    const found = await store.get(JOBS, id, lasting)
    const stored = found?.value as unknown as JobRecord | undefined
    if (!found || stored?.state !== 'running' || stored.holder !== this.#record.holder) {
      onLost()
      throw attemptOver()
    }
    if (found.version > this.#version) {
      this.#version = found.version
      if (stored.isCancelling) this.#record = { ...this.#record, isCancelling: true }
    }
    if (stored.isCancelling) onCancel()
  }

  [Symbol.dispose](): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }
}

/** Appends entries to the segments of the log, and drops all but the last two segments. */
function logOps(
  id: string,
  logged: number,
  entries: readonly JobLogEntry[]
): { readonly ops: StoreOp[]; readonly logged: number } {
  const ops: StoreOp[] = []
  for (let at = 0; at < entries.length; ) {
    const segment = segmentOf(logged + at)
    const size = (segment + 1) * SEGMENT - (logged + at)
    const values = entries.slice(at, at + size) as unknown as Json[]
    ops.push({ op: 'append', log: LOG, id: streamOf(id, segment), values })
    if (logged + at === segment * SEGMENT && segment >= 2) ops.push({ op: 'drop', log: LOG, id: streamOf(id, segment - 2) })
    at += size
  }
  return { ops, logged: logged + entries.length }
}
