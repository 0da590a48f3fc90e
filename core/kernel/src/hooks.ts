import { createRequire } from 'node:module'
import type * as Tapable from 'tapable'
import { contractMismatch, tapFailed, tapTimeout } from './errors.ts'
import type { Log } from './log.ts'
import type { TapOptions } from './plugin.ts'
import type { AnyHook, CallContext, HookKind } from './token.ts'

/** What the taps of one plugin on one hook have cost. */
export interface HookStats {
  readonly plugin: string
  readonly hook: string
  readonly calls: number
  readonly errors: number
  readonly ms: number
}

type AnyTap = Tap['run']
/** One hook: its taps, and tapable's hook of them, made again when they change (tapable has no untap). */
interface HookPoint {
  readonly kind: HookKind
  taps: Tap[]
  call: Call | undefined
}

export interface Hooks {
  /** Joins a hook; `order` is the plugin's place in the start order. */
  tap(ref: AnyHook, plugin: string, order: number, run: AnyTap, options?: TapOptions): () => void
  /** How the owner calls one hook. */
  caller(ref: AnyHook, by?: string): Call
  stats(): HookStats[]
  /** Hooks that still have taps. */
  tapped(): string[]
  [Symbol.dispose](): void
}

export interface HookOptions {
  readonly log: Log
  /** Milliseconds that a tap may take unless it asked for a limit of its own. */
  readonly limitMs: number
  /** Milliseconds after which a tap is told as slow; one that asked for a limit of its own, when half of that is over. */
  readonly slowMs: number
  /** Whether calls, errors and times are counted. */
  readonly accounting: boolean
}

/** Makes all hooks of a host: whoever taps first makes the point, before or after the owner's setup. */
export function createHooks({ log, limitMs, slowMs, accounting }: HookOptions): Hooks {
  const points = new Map<string, HookPoint>()
  const stats = new Map<string, HookStats & Tap['stats']>()
  const watch = createTapWatchdog()
  const ways: HookRunOptions = { log, watch, accounting }
  const pointOf = ({ id, kind }: AnyHook, by: string) => {
    const point = points.get(id) ?? made(points, id, { kind, taps: [], call: undefined })
    if (point.kind !== kind) throw contractMismatch(by, id, `${kind} against ${point.kind}`)
    return point
  }
  return {
    tap(ref, plugin, order, run, options = {}) {
      const point = pointOf(ref, plugin)
      const key = `${plugin} ${ref.id}`
      const count = stats.get(key) ?? made(stats, key, { plugin, hook: ref.id, calls: 0, errors: 0, ms: 0 })
      const tap: Tap = {
        plugin,
        hook: ref.id,
        order,
        stage: options.stage ?? 0,
        limitMs: options.limitMs ?? limitMs,
        slowMs: options.limitMs === undefined ? slowMs : Math.max(slowMs, options.limitMs / 2),
        run,
        stats: count,
      }
      changeTaps(point, [...point.taps, tap])
      const others = () => point.taps.filter(other => other !== tap)
      return () => changeTaps(point, others())
    },
    caller(ref, by = 'the program') {
      const point = pointOf(ref, by)
      return (value, ctx) => {
        if (point.taps.length === 0) return ref.kind === 'waterfall' ? Promise.resolve(value) : NOTHING
        point.call ??= compileHook(ref.kind, point.taps, ways)
        return point.call(value, ctx)
      }
    },
    stats: () => [...stats.values()].map(count => ({ ...count })),
    tapped: () => [...points].filter(([, point]) => point.taps.length > 0).map(([id]) => id),
    [Symbol.dispose]: () => watch.stop(),
  }
}

const NOTHING = Promise.resolve(undefined)

function made<V>(map: Map<string, V>, key: string, value: V): V {
  map.set(key, value)
  return value
}

function changeTaps(point: HookPoint, taps: Tap[]) {
  point.taps = taps.sort((a, b) => a.stage - b.stage || a.order - b.order)
  point.call = undefined
}

/** One tap of a hook. */
interface Tap {
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
type Call = (value: unknown, ctx: CallContext) => Promise<unknown>

/** How taps are run. */
interface HookRunOptions {
  /** Takes slow taps, and the failures of those that only look on. */
  readonly log: Log
  readonly watch: TapWatchdog
  /** Whether calls, errors and times are counted. */
  readonly accounting: boolean
}

/** What our taps carry in tapable's options. */
interface TapableOptions {
  readonly tap: Tap
}
type Arguments = [value: unknown, ctx: CallContext]

const KINDS = {
  series: () => new (tapable().AsyncSeriesHook)<Arguments, TapableOptions>(['value', 'use']),
  bail: () => new (tapable().AsyncSeriesBailHook)<Arguments, unknown, TapableOptions>(['value', 'use']),
  waterfall: () => new (tapable().AsyncSeriesWaterfallHook)<Arguments, unknown, TapableOptions>(['value', 'use']),
} as const

/** Loaded with the first hook: most processes and threads that import this package make none. */
const tapable = () => createRequire(import.meta.url)('tapable') as typeof Tapable

/** A hook of tapable's own kind with these taps, each of them limited and counted by a wrapper round it. */
function compileHook(kind: HookKind, taps: readonly Tap[], ways: HookRunOptions): Call {
  const hook = KINDS[kind]()
  hook.intercept({ register: info => ({ ...info, fn: wrapped(info.tap, kind, ways) }) })
  // tapAsync and not tapPromise: so a tap that answers at once costs no promise
  for (const tap of taps) hook.tapAsync({ name: tap.plugin, tap }, tap.run)
  return (value, ctx) => hook.promise(value, ctx)
}

/** How tapable is answered. */
type TapableCallback = (error?: Error | null, answer?: unknown) => void

/**
 * When the tap before ended, for the one that tapable begins in answer to that: the end of one is the beginning of the next, as reading the clock is half of
 * what counting costs. Zero outside of such an answer.
 */
let previousEnd = 0

function wrapped(tap: Tap, kind: HookKind, ways: HookRunOptions) {
  return (value: unknown, ctx: CallContext, done: TapableCallback) => {
    let began = 0
    if (ways.accounting) {
      tap.stats.calls++
      began = previousEnd || performance.now()
      previousEnd = 0
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
abstract class PendingTap {
  until = 0
  previous: PendingTap = this
  next: PendingTap = this

  abstract expire(): void
}

class ListHead extends PendingTap {
  expire() {}
}

interface TapWatchdog {
  /** Calls `late` of `one` when it has waited for so many milliseconds, to the nearest twentieth of a second. */
  until(one: PendingTap, limitMs: number): void
  leave(one: PendingTap): void
  stop(): void
}

const CHECK_MS = 50

/** One coarse timer and clock for all taps that are under way: a timer a tap would cost more than most taps. */
function createTapWatchdog(): TapWatchdog {
  const first = new ListHead()
  let timer: NodeJS.Timeout | undefined
  let now = 0
  const check = () => {
    now = performance.now()
    const late: PendingTap[] = []
    for (let one = first.next; one !== first; one = one.next) if (one.until <= now) late.push(one)
    for (const one of late) one.expire()
    if (first.next === first) stop()
  }
  const stop = () => {
    clearInterval(timer)
    timer = undefined
  }
  const start = () => {
    now = performance.now()
    timer = setInterval(check, CHECK_MS).unref()
  }
  return {
    stop,
    until(one, limitMs) {
      if (timer === undefined) start()
      // the clock may be one look old
      one.until = now + limitMs + CHECK_MS
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
class RunningTap extends PendingTap {
  readonly #tap: Tap
  readonly #kind: HookKind
  readonly #ways: HookRunOptions
  readonly #began: number
  readonly #done: TapableCallback
  #isOver = false

  constructor(tap: Tap, kind: HookKind, ways: HookRunOptions, began: number, done: TapableCallback) {
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
    previousEnd = 0
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
    previousEnd = 0
  }

  expire() {
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
    previousEnd = performance.now()
    const ms = previousEnd - this.#began
    stats.ms += ms
    if (ms > slowMs) this.#ways.log.warn({ plugin, hook, ms: Math.round(ms), slow_tap_ms: slowMs }, 'a tap was slow')
  }
}
