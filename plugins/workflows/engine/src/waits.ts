import type { Json } from '@svc/core/contracts'

/** The reason a wait ended. `event` is the id of a stored event. */
export type Woken = { readonly by: 'time' } | { readonly by: 'event' | 'answer'; readonly data: Json; readonly event?: string }

/** The conditions that end a wait of a step. */
export interface Sleep {
  readonly step: string
  readonly node: string
  readonly since: number
  readonly until?: number
  readonly event?: string
}

interface Sleeper extends Sleep {
  readonly wake: (woken: Woken) => void
  readonly leave: (reason: unknown) => void
  readonly timer: NodeJS.Timeout | undefined
}

/** The longest delay of a Node timer. A run with longer waits sleeps in the store. */
const LONGEST_MS = 2 ** 31 - 1

/** The steps of a run that wait in this process for time, events or answers. */
export class Waits {
  readonly #sleepers = new Map<string, Sleeper>()
  readonly #onTime: (step: string) => void

  /** `onTime` is called when the time of a step is over, and decides whether to wake it. */
  constructor(onTime: (step: string) => void) {
    this.#onTime = onTime
  }

  get size(): number {
    return this.#sleepers.size
  }
  /** The earliest end of a wait (Unix milliseconds). */
  get nextAt(): number | undefined {
    const times = [...this.#sleepers.values()].flatMap(({ until }) => (until === undefined ? [] : [until]))
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** Waits. Throws the reason of the signal, or the reason passed to `end`. */
  async sleep(sleep: Sleep, signal: AbortSignal): Promise<Woken> {
    signal.throwIfAborted()
    const woken = Promise.withResolvers<Woken>()
    const { step, until } = sleep
    const onAbort = () => woken.reject(signal.reason)
    const timer =
      until === undefined || until - Date.now() > LONGEST_MS
        ? undefined
        : setTimeout(() => this.#onTime(step), Math.max(0, until - Date.now()))
    this.#sleepers.set(step, { ...sleep, wake: woken.resolve, leave: woken.reject, timer })
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      return await woken.promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      this.#sleepers.delete(step)
    }
  }

  has(step: string): boolean {
    return this.#sleepers.has(step)
  }
  wake(step: string, woken: Woken): void {
    this.#sleepers.get(step)?.wake(woken)
  }
  /** Ends all waits with a reason. */
  end(reason: unknown): void {
    for (const sleeper of this.#sleepers.values()) sleeper.leave(reason)
  }
}

interface Open {
  /** A time of `performance.now()`. */
  readonly until: number
  readonly late: () => Error
  readonly end: (reason: unknown) => void
}

const MAX_TIMER_MS = 2 ** 31 - 1

/** Time limit and abort signal of a call. */
interface Bounds {
  readonly ms: number
  /** Creates the error after the time limit. */
  readonly late: () => Error
  readonly signal: AbortSignal
}

/**
 * The open node calls of a run. Each ends with its time limit or its signal. All calls share a timer, and calls with the same
 * signal share a listener: a timer and a listener for each call cost a third of a step.
 */
export class NodeCalls {
  readonly #open = new Set<Open>()
  readonly #bySignal = new WeakMap<AbortSignal, Set<Open>>()
  #timer: NodeJS.Timeout | undefined
  #timerAt = Number.POSITIVE_INFINITY

  /** Throws the reason of the signal, or the error of `late`. */
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

  /** Stops the timer after the last call. */
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

  /** Sets the timer for the next time limit. A timer that fires early is set again. */
  #watch(until: number): void {
    if (until >= this.#timerAt) return
    clearTimeout(this.#timer)
    this.#timerAt = until
    this.#timer = setTimeout(() => this.#look(), Math.min(MAX_TIMER_MS, Math.max(0, until - performance.now())))
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
