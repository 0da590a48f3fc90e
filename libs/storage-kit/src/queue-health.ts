import type { CheckReport } from '@svc/core/contracts'

/** What the health check of a run queue knows: whether this worker waits for runs, and gets them. */
export class QueueHealth {
  readonly #lateMs: number
  #takers = 0
  /** When the queue was read last; `undefined`: no worker takes runs. */
  #lookedAt: number | undefined
  /** Since when a taker waits for a run; `undefined`: it executes as many as it may. */
  #idleSince: number | undefined
  #overdueS = 0

  constructor(lateMs: number) {
    this.#lateMs = lateMs
  }

  /**
   * A worker takes runs from now on. The function that it returns ends that. After a failure, the worker tries again: the time since the
   * last success goes on.
   */
  take(): (end: 'done' | 'failed') => void {
    this.#takers += 1
    if (this.#lookedAt === undefined) this.looked()
    this.#idleSince ??= performance.now()
    return end => {
      this.#takers -= 1
      if (this.#takers === 0 && end === 'done') this.#lookedAt = this.#idleSince = undefined
    }
  }

  /** The queue was read. */
  looked(): void {
    this.#lookedAt = performance.now()
  }

  /** The worker has got a run. */
  busy(): void {
    this.#idleSince = undefined
  }

  /** The worker waits for the next run. */
  idle(): void {
    this.#idleSince ??= performance.now()
    this.looked()
  }

  /** For so long a run is due that this worker could take. */
  overdue(seconds: number): void {
    this.#overdueS = seconds
  }

  report(): CheckReport {
    if (this.#lookedAt === undefined || this.#idleSince === undefined) return { status: 'healthy' }
    const now = performance.now()
    const [unreadMs, idleMs] = [now - this.#lookedAt, now - this.#idleSince]
    if (unreadMs > this.#lateMs)
      return { status: 'unhealthy', reason: `the queue of runs was not read for ${Math.round(unreadMs / 1_000)} s` }
    if (idleMs > this.#lateMs && this.#overdueS * 1_000 > this.#lateMs)
      return { status: 'unhealthy', reason: `a run is due for ${Math.round(this.#overdueS)} s, but the queue gives none` }
    return { status: 'healthy' }
  }
}
