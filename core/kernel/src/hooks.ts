import { createRequire } from 'node:module'
import type * as Tapable from 'tapable'
import { contractMismatch, tapFailed, tapTimeout } from './errors.ts'
import type { Log } from './log.ts'
import type { TapOptions } from './plugin.ts'
import type { Tracer } from './spans.ts'
import type { AnyHook, CallContext, HookKind } from './token.ts'

/** Statistics of one plugin's taps on one hook. */
export interface HookStats {
  readonly plugin: string
  readonly hook: string
  readonly calls: number
  readonly errors: number
  readonly ms: number
}

type AnyTap = Tap['run']
/** One hook: its taps, and the tapable hook compiled from them. tapable cannot remove a tap, so a change compiles a new one. */
interface HookPoint {
  readonly kind: HookKind
  taps: Tap[]
  call: Call | undefined
}

export interface Hooks {
  /** Adds a tap and returns its removal. `order` is the plugin's position in the start order. */
  tap(ref: AnyHook, plugin: string, order: number, run: AnyTap, options?: TapOptions): () => void
  /** Returns the function with which the owner calls one hook. */
  caller(ref: AnyHook, by?: string): Call
  /** Returns a function that tells whether a hook has taps. */
  hasTaps(ref: AnyHook): () => boolean
  stats(): HookStats[]
  /** Ids of hooks that still have taps. */
  tapped(): string[]
  [Symbol.dispose](): void
}

export interface HookOptions {
  readonly log: Log
  /** Time limit of a tap in milliseconds, unless the tap sets its own. */
  readonly limitMs: number
  /**
   * Milliseconds after which a tap is logged as slow. A tap with its own limit is slow when half of that has passed, if that is
   * later.
   */
  readonly slowMs: number
  /** Whether to count calls, errors and durations. */
  readonly accounting: boolean
  readonly tracer: Pick<Tracer, 'isOn' | 'tap'>
}

/** Creates the hooks of a host. The first tap or caller creates the hook, before or after the setup of its owner. */
export function createHooks({ log, limitMs, slowMs, accounting, tracer }: HookOptions): Hooks {
  const points = new Map<string, HookPoint>()
  const stats = new Map<string, HookStats & Tap['stats']>()
  const watch = createTapWatchdog()
  const ways: HookRunOptions = { log, watch, accounting, tracer }
  const pointOf = ({ id, kind }: AnyHook, by: string) => {
    const point = points.get(id) ?? made(points, id, { kind, taps: [], call: undefined })
    if (point.kind !== kind) throw contractMismatch(by, id, `${kind} instead of ${point.kind}`)
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
    hasTaps(ref) {
      const point = pointOf(ref, 'svc')
      return () => point.taps.length > 0
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
  /** Milliseconds after which the tap is logged as slow. */
  readonly slowMs: number
  readonly run: (value: unknown, ctx: CallContext) => unknown
  readonly stats: { calls: number; errors: number; ms: number }
}
type Call = (value: unknown, ctx: CallContext) => Promise<unknown>

/** Settings of running taps. */
interface HookRunOptions {
  /** Receives slow taps, and failures of taps of series hooks. */
  readonly log: Log
  readonly watch: TapWatchdog
  /** Whether to count calls, errors and durations. */
  readonly accounting: boolean
  readonly tracer: Pick<Tracer, 'isOn' | 'tap'>
}

/** The property that our taps carry in the options of tapable. */
interface TapableOptions {
  readonly tap: Tap
}
type Arguments = [value: unknown, ctx: CallContext]

const KINDS = {
  series: () => new (tapable().AsyncSeriesHook)<Arguments, TapableOptions>(['value', 'ctx']),
  bail: () => new (tapable().AsyncSeriesBailHook)<Arguments, unknown, TapableOptions>(['value', 'ctx']),
  waterfall: () => new (tapable().AsyncSeriesWaterfallHook)<Arguments, unknown, TapableOptions>(['value', 'ctx']),
} as const

/** Loaded with the first hook: most processes and threads that import this package create none. */
const tapable = () => createRequire(import.meta.url)('tapable') as typeof Tapable

/** Compiles a tapable hook whose taps are wrapped, to limit and count each of them. */
function compileHook(kind: HookKind, taps: readonly Tap[], ways: HookRunOptions): Call {
  const hook = KINDS[kind]()
  hook.intercept({ register: info => ({ ...info, fn: wrapped(info.tap, kind, ways) }) })
  // tapAsync, not tapPromise: a tap that returns at once then costs no promise.
  for (const tap of taps) hook.tapAsync({ name: tap.plugin, tap }, tap.run)
  return (value, ctx) => hook.promise(value, ctx)
}

/** The callback with which tapable takes the result of a tap. */
type TapableCallback = (error?: Error | null, answer?: unknown) => void

/**
 * The time at which the previous tap ended, for the tap that tapable starts from its callback: the end of one is the start of
 * the next. Reading the clock once instead of twice halves the cost of counting. Zero outside of such a callback.
 */
let previousEnd = 0

function wrapped(tap: Tap, kind: HookKind, ways: HookRunOptions) {
  return (value: unknown, ctx: CallContext, done: TapableCallback) => {
    let began = 0
    const trace = ctx?.trace !== undefined && ways.tracer.isOn ? ctx : undefined
    if (ways.accounting || trace) {
      if (ways.accounting) tap.stats.calls++
      began = previousEnd || performance.now()
      previousEnd = 0
    }
    const running = new RunningTap(tap, kind, ways, began, done, trace)
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

/** A tap that is under way, in a linked list of all of them. Linking costs a third of adding to a Set and deleting from it. */
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
  /** Calls `expire` of the tap when `limitMs` have passed, to the nearest 50 ms. */
  until(pendingTap: PendingTap, limitMs: number): void
  leave(pendingTap: PendingTap): void
  stop(): void
}

const CHECK_MS = 50

/** Creates one coarse timer and clock for all taps that are under way. A timer for each tap would cost more than most taps. */
function createTapWatchdog(): TapWatchdog {
  const first = new ListHead()
  let timer: NodeJS.Timeout | undefined
  let now = 0
  const check = () => {
    now = performance.now()
    const late: PendingTap[] = []
    for (let item = first.next; item !== first; item = item.next) if (item.until <= now) late.push(item)
    for (const pendingTap of late) pendingTap.expire()
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
    until(item, limitMs) {
      if (timer === undefined) start()
      // The clock can be one interval old.
      item.until = now + limitMs + CHECK_MS
      item.previous = first.previous
      item.next = first
      first.previous.next = item
      first.previous = item
    },
    leave(item) {
      item.previous.next = item.next
      item.next.previous = item.previous
      item.previous = item.next = item
    },
  }
}

/** A tap that is under way. It calls tapable back exactly once. */
class RunningTap extends PendingTap {
  readonly #tap: Tap
  readonly #kind: HookKind
  readonly #ways: HookRunOptions
  readonly #began: number
  readonly #done: TapableCallback
  /** The context of a tap that is traced. */
  readonly #trace: CallContext | undefined
  #isOver = false

  constructor(tap: Tap, kind: HookKind, ways: HookRunOptions, began: number, done: TapableCallback, trace?: CallContext) {
    super()
    this.#tap = tap
    this.#kind = kind
    this.#ways = ways
    this.#began = began
    this.#done = done
    this.#trace = trace
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

  /** A failing tap of a series hook is logged and does not stop the work; tapable alone would stop. */
  fail(error: unknown) {
    if (this.#isOver) return
    this.#end(error)
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

  #end(error?: unknown) {
    this.#isOver = true
    if (this.next !== this) this.#ways.watch.leave(this)
    if (!this.#ways.accounting && !this.#trace) return
    previousEnd = performance.now()
    if (this.#ways.accounting) this.#count()
    if (!this.#trace) return
    const { plugin, hook } = this.#tap
    this.#ways.tracer.tap({ plugin, hook, began: this.#began, ended: previousEnd, error }, this.#trace)
  }

  #count() {
    const { plugin, hook, stats, slowMs } = this.#tap
    const ms = previousEnd - this.#began
    stats.ms += ms
    if (ms > slowMs) this.#ways.log.warn({ plugin, hook, ms: Math.round(ms), slow_tap_ms: slowMs }, 'a tap is slow')
  }
}
