import type { Json } from '@svc/core/contracts'

/** What ended a wait; `event` is the one that was kept until then. */
export type Woken = { readonly by: 'time' } | { readonly by: 'event' | 'answer'; readonly data: Json; readonly event?: string }

/** What a step waits for. */
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

/** The longest time that a timer of Node takes; a run that waits for longer is parked long before. */
const LONGEST_MS = 2 ** 31 - 1

/** The steps of one run that wait here, for time, events or answers. */
export class Waits {
  readonly #sleepers = new Map<string, Sleeper>()
  readonly #onTime: (step: string) => void

  /** `onTime` is told when a step's time has come: whether it wakes then is decided there. */
  constructor(onTime: (step: string) => void) {
    this.#onTime = onTime
  }

  get size(): number {
    return this.#sleepers.size
  }
  /** When the next one's time comes (Unix milliseconds). */
  get nextAt(): number | undefined {
    const times = [...this.#sleepers.values()].flatMap(({ until }) => (until === undefined ? [] : [until]))
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** Waits. Throws what the signal aborts with, and what everybody has to leave with. */
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
  /** Everybody leaves. */
  end(reason: unknown): void {
    for (const one of this.#sleepers.values()) one.leave(reason)
  }
}

interface Open {
  /** As `performance.now()` tells it. */
  readonly until: number
  readonly late: () => Error
  readonly end: (reason: unknown) => void
}

const MAX_TIMER_MS = 2 ** 31 - 1

/** What a call is bounded by. */
interface Bounds {
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
