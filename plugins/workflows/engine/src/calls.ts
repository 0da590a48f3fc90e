interface Open {
  /** As `performance.now()` tells it. */
  readonly until: number
  readonly late: () => Error
  readonly end: (reason: unknown) => void
}

const LONGEST_MS = 2 ** 31 - 1

/** What a call is bounded by. */
export interface Bounds {
  readonly ms: number
  /** What it fails with after that. */
  readonly late: () => Error
  readonly signal: AbortSignal
}

/**
 * The calls of a run's nodes that are open. Each ends with its time or with its signal, as `withTimeout` of the core has it; but all share a timer, and those with
 * one signal a listener: a timer and a listener a call cost a third of a step.
 */
export class Calls {
  readonly #open = new Set<Open>()
  readonly #bySignal = new WeakMap<AbortSignal, Set<Open>>()
  #timer: NodeJS.Timeout | undefined
  #timerAt = Number.POSITIVE_INFINITY

  /** Throws what the signal aborts with, or `late`. */
  async withTimeout<T>({ ms, late, signal }: Bounds, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    const ending = new AbortController()
    const over = Promise.withResolvers<T>()
    const end = (reason: unknown) => {
      ending.abort(reason)
      over.reject(reason)
    }
    const open = { until: performance.now() + ms, late, end }
    const beside = this.#with(signal)
    beside.add(open)
    this.#open.add(open)
    this.#watch(open.until)
    work(ending.signal).then(over.resolve, over.reject)
    try {
      return await over.promise
    } finally {
      beside.delete(open)
      this.#open.delete(open)
    }
  }

  /** No call is open any more. */
  close(): void {
    clearTimeout(this.#timer)
  }

  #with(signal: AbortSignal): Set<Open> {
    const there = this.#bySignal.get(signal)
    if (there) return there
    const made = new Set<Open>()
    this.#bySignal.set(signal, made)
    const onAbort = () => {
      for (const { end } of made) end(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    return made
  }

  /** A timer that comes too early for those that are open then is set again. */
  #watch(until: number): void {
    if (until >= this.#timerAt) return
    clearTimeout(this.#timer)
    this.#timerAt = until
    this.#timer = setTimeout(() => this.#look(), Math.min(LONGEST_MS, Math.max(0, until - performance.now())))
  }

  #look(): void {
    this.#timerAt = Number.POSITIVE_INFINITY
    const now = performance.now()
    for (const { until, late, end } of this.#open) {
      if (until <= now) end(late())
      else this.#watch(until)
    }
  }
}
