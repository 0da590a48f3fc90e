import { createRequire } from 'node:module'
import type * as Tapable from 'tapable'
import { tapFailed, tapTimeout } from './errors.ts'
import type { Log } from './log.ts'
import type { HookKind, CallContext } from './token.ts'

/** One tap of a hook. */
export interface Tap {
  readonly plugin: string
  readonly hook: string
  readonly order: number
  readonly stage: number
  readonly limitMs: number
  /** From then on it is logged as slow. */
  readonly slowMs: number
  readonly run: (value: unknown, ctx: CallContext) => unknown
  readonly stats: { calls: number; errors: number; ms: number }
}
export type Call = (value: unknown, ctx: CallContext) => Promise<unknown>

/** How taps are run. */
export interface Ways {
  /** Takes slow taps, and the failures of those that only look on. */
  readonly log: Log
  readonly watch: Watch
  /** Whether calls, errors and times are counted. */
  readonly accounting: boolean
}

/** What our taps carry in tapable's options. */
interface Ours {
  readonly tap: Tap
}
type Arguments = [value: unknown, ctx: CallContext]

const KINDS = {
  series: () => new (tapable().AsyncSeriesHook)<Arguments, Ours>(['value', 'use']),
  bail: () => new (tapable().AsyncSeriesBailHook)<Arguments, unknown, Ours>(['value', 'use']),
  waterfall: () => new (tapable().AsyncSeriesWaterfallHook)<Arguments, unknown, Ours>(['value', 'use']),
} as const

/** Loaded with the first hook: most processes and threads that import this package make none. */
const tapable = () => createRequire(import.meta.url)('tapable') as typeof Tapable

/** A hook of tapable's own kind with these taps, each of them limited and counted by a wrapper round it. */
export function compileHook(kind: HookKind, taps: readonly Tap[], ways: Ways): Call {
  const hook = KINDS[kind]()
  hook.intercept({ register: info => ({ ...info, fn: wrapped(info.tap, kind, ways) }) })
  // tapAsync and not tapPromise: so a tap that answers at once costs no promise
  for (const tap of taps) hook.tapAsync({ name: tap.plugin, tap }, tap.run)
  return (value, ctx) => hook.promise(value, ctx)
}

/** How tapable is answered. */
type Done = (error?: Error | null, answer?: unknown) => void

/**
 * When the tap before ended, for the one that tapable begins in answer to that: the end of one is the beginning of the next, as reading the clock is half of
 * what counting costs. Zero outside of such an answer.
 */
let handedOn = 0

function wrapped(tap: Tap, kind: HookKind, ways: Ways) {
  return (value: unknown, ctx: CallContext, done: Done) => {
    let began = 0
    if (ways.accounting) {
      tap.stats.calls++
      began = handedOn || performance.now()
      handedOn = 0
    }
    const running = new RunningTap(tap, kind, ways, began, done)
    let answer: unknown
    try {
      answer = tap.run(value, ctx)
    } catch (error) {
      return running.fail(error)
    }
    if (answer instanceof Promise) running.wait(answer)
    else running.answer(answer)
  }
}

/** What is looked at while it waits. It is linked with the others that wait, which costs a third of adding it to a Set and deleting it there. */
abstract class Waiting {
  until = 0
  previous: Waiting = this
  next: Waiting = this

  abstract late(): void
}

class First extends Waiting {
  late() {}
}

export interface Watch {
  /** Calls `late` of `one` when it has waited for so many milliseconds, to the nearest twentieth of a second. */
  until(one: Waiting, limitMs: number): void
  leave(one: Waiting): void
  stop(): void
}

const LOOK_MS = 50

/** One coarse timer and clock for all taps that are under way: a timer a tap would cost more than most taps. */
export function createWatch(): Watch {
  const first = new First()
  let timer: NodeJS.Timeout | undefined
  let now = 0
  const look = () => {
    now = performance.now()
    const late: Waiting[] = []
    for (let one = first.next; one !== first; one = one.next) if (one.until <= now) late.push(one)
    for (const one of late) one.late()
    if (first.next === first) stop()
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
      // the clock may be one look old
      one.until = now + limitMs + LOOK_MS
      one.previous = first.previous
      one.next = first
      first.previous.next = one
      first.previous = one
    },
    leave(one) {
      one.previous.next = one.next
      one.next.previous = one.previous
      one.previous = one.next = one
    },
  }
}

/** A tap that is being called. It answers tapable once, whatever comes later. */
class RunningTap extends Waiting {
  readonly #tap: Tap
  readonly #kind: HookKind
  readonly #ways: Ways
  readonly #began: number
  readonly #done: Done
  #isOver = false

  constructor(tap: Tap, kind: HookKind, ways: Ways, began: number, done: Done) {
    super()
    this.#tap = tap
    this.#kind = kind
    this.#ways = ways
    this.#began = began
    this.#done = done
  }

  wait(answer: Promise<unknown>) {
    this.#ways.watch.until(this, this.#tap.limitMs)
    answer.then(
      value => this.answer(value),
      error => this.fail(error)
    )
  }

  answer(value: unknown) {
    if (this.#isOver) return
    this.#end()
    if (this.#kind === 'series') this.#done()
    else this.#done(null, value)
    handedOn = 0
  }

  /** A tap that only looks on may fail without breaking the work; tapable alone would stop at it. */
  fail(error: unknown) {
    if (this.#isOver) return
    this.#end()
    const { plugin, hook, stats } = this.#tap
    if (this.#ways.accounting) stats.errors++
    const failure = tapFailed(plugin, hook, error)
    if (this.#kind === 'series') {
      this.#ways.log.warn({ err: failure, plugin, hook }, 'a tap failed')
      this.#done()
    } else this.#done(failure)
    handedOn = 0
  }

  late() {
    const { plugin, hook, limitMs } = this.#tap
    this.fail(tapTimeout(plugin, hook, limitMs))
  }

  #end() {
    this.#isOver = true
    if (this.next !== this) this.#ways.watch.leave(this)
    if (this.#ways.accounting) this.#count()
  }

  #count() {
    const { plugin, hook, stats, slowMs } = this.#tap
    handedOn = performance.now()
    const ms = handedOn - this.#began
    stats.ms += ms
    if (ms > slowMs) this.#ways.log.warn({ plugin, hook, ms: Math.round(ms), slow_tap_ms: slowMs }, 'a tap was slow')
  }
}
