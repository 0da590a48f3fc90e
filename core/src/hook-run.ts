import { tapFailed, tapTimeout } from './errors.ts'
import type { Log } from './log.ts'
import type { HookKind, Use } from './token.ts'

/** One tap of a hook. */
export interface Tap {
  readonly plugin: string
  readonly hook: string
  readonly order: number
  readonly stage: number
  readonly limitMs: number
  /** From then on it is told as slow. */
  readonly slowMs: number
  readonly run: (value: unknown, use: Use) => unknown
  readonly figures: { calls: number; errors: number; ms: number }
}
export type Call = (value: unknown, use: Use) => Promise<unknown>

/** How taps are run. */
export interface Ways {
  /** Hears of slow taps, and of the failures of those that only look on. */
  readonly log: Log
  readonly watch: Watch
  /** Whether calls, errors and times are counted. */
  readonly accounting: boolean
}

/**
 * What runs these taps, one after the other. A tap that answers at once costs no promise, the end of one is the beginning of the next (reading the clock is
 * half of what counting costs), and a call is watched as a whole.
 */
export function runnerOf(kind: HookKind, taps: readonly Tap[], ways: Ways): Call {
  return (value, use) =>
    new Promise((resolve, reject) => new Running({ kind, taps, ways, use, resolve, reject }, value, 0).begin())
}

/** What stays the same while a hook is called. */
interface Frame {
  readonly kind: HookKind
  readonly taps: readonly Tap[]
  readonly ways: Ways
  readonly use: Use
  resolve(answer: unknown): void
  reject(error: unknown): void
}

/** A hook that is being called, from one of its taps on. */
class Running implements Waiting {
  until = Number.POSITIVE_INFINITY
  readonly #frame: Frame
  #value: unknown
  #at: number
  #begun = 0
  #isOver = false
  readonly #answered = (answer: unknown) => {
    if (!this.#isOver && this.#take(answer)) this.#go()
  }
  readonly #failed = (error: unknown) => {
    if (!this.#isOver && this.#fail(error)) this.#go()
  }

  constructor(frame: Frame, value: unknown, at: number) {
    this.#frame = frame
    this.#value = value
    this.#at = at
  }

  begin() {
    if (this.#frame.ways.accounting) this.#begun = performance.now()
    this.#go()
  }

  /** A tap has not answered in time. What it says later finds nobody: another goes on in this one's place. */
  late() {
    const { taps } = this.#frame
    const { plugin, hook, limitMs } = taps[this.#at]!
    const next = new Running(this.#frame, this.#value, this.#at)
    next.#begun = this.#begun
    this.#leave()
    next.#failed(tapTimeout(plugin, hook, limitMs))
  }

  #go() {
    const { taps, use, ways } = this.#frame
    for (let tap = taps[this.#at]; tap !== undefined; tap = taps[this.#at]) {
      if (ways.accounting) tap.figures.calls++
      let answer: unknown
      try {
        answer = tap.run(this.#value, use)
      } catch (error) {
        if (this.#fail(error)) continue
        return
      }
      if (answer instanceof Promise) return this.#wait(tap, answer)
      if (!this.#take(answer)) return
    }
    this.#end(this.#frame.kind === 'waterfall' ? this.#value : undefined)
  }

  #wait(tap: Tap, answer: Promise<unknown>) {
    this.#frame.ways.watch.until(this, tap.limitMs)
    answer.then(this.#answered, this.#failed)
  }

  /** What a tap answered; false where it was the last word. */
  #take(answer: unknown): boolean {
    this.#count()
    this.#at++
    const { kind } = this.#frame
    if (answer === undefined || kind === 'series') return true
    if (kind === 'bail') return this.#end(answer)
    this.#value = answer
    return true
  }

  /** A tap that only looks on may fail without breaking the work; tapable alone would stop at it. */
  #fail(error: unknown): boolean {
    this.#count()
    const { kind, taps, ways } = this.#frame
    const { plugin, hook, figures } = taps[this.#at++]!
    if (ways.accounting) figures.errors++
    const failure = tapFailed(plugin, hook, error)
    if (kind === 'series') {
      ways.log.warn({ err: failure, plugin, hook }, 'a tap failed')
      return true
    }
    this.#leave()
    this.#frame.reject(failure)
    return false
  }

  #count() {
    if (!this.#frame.ways.accounting) return
    const now = performance.now()
    const ms = now - this.#begun
    const tap = this.#frame.taps[this.#at]!
    tap.figures.ms += ms
    if (ms > tap.slowMs) this.#tell(tap, ms)
    this.#begun = now
  }

  #tell({ plugin, hook, slowMs }: Tap, ms: number) {
    this.#frame.ways.log.warn({ plugin, hook, ms: Math.round(ms), slow_tap_ms: slowMs }, 'a tap was slow')
  }

  #end(answer: unknown): false {
    this.#leave()
    this.#frame.resolve(answer)
    return false
  }

  #leave() {
    this.#isOver = true
    if (this.until !== Number.POSITIVE_INFINITY) this.#frame.ways.watch.leave(this)
  }
}

/** What is looked at while it waits. */
interface Waiting {
  until: number
  late(): void
}

export interface Watch {
  /** Tells `one` when it is late: so many milliseconds from now, to the nearest twentieth of a second. */
  until(one: Waiting, limitMs: number): void
  leave(one: Waiting): void
  stop(): void
}

const LOOK_MS = 50

/** One coarse timer and clock for all taps that are under way: a timer a tap would cost more than most taps. */
export function createWatch(): Watch {
  const waiting = new Set<Waiting>()
  let timer: NodeJS.Timeout | undefined
  let now = 0
  const look = () => {
    now = performance.now()
    for (const one of waiting) if (one.until <= now) one.late()
    if (waiting.size === 0) stop()
  }
  const stop = () => {
    clearInterval(timer)
    timer = undefined
  }
  const start = () => {
    now = performance.now()
    timer = setInterval(look, LOOK_MS).unref()
  }
  return {
    stop,
    until(one, limitMs) {
      if (timer === undefined) start()
      if (one.until === Number.POSITIVE_INFINITY) waiting.add(one)
      // the clock may be one look old
      one.until = now + limitMs + LOOK_MS
    },
    leave: one => void waiting.delete(one),
  }
}
