import { AsyncSeriesBailHook, AsyncSeriesHook, AsyncSeriesWaterfallHook } from 'tapable'
import { contractMismatch, tapFailed, tapTimeout } from './errors.ts'
import type { Log } from './log.ts'
import type { TapOptions } from './plugin.ts'
import type { AnyHook, HookKind, Use } from './token.ts'

/** What the taps of one plugin on one hook have cost. */
export interface HookFigures {
  readonly plugin: string
  readonly hook: string
  readonly calls: number
  readonly errors: number
  readonly ms: number
}

type AnyTap = (value: unknown, use: Use) => unknown
interface Tap {
  readonly plugin: string
  readonly hook: string
  readonly order: number
  readonly stage: number
  readonly limitMs: number
  readonly run: AnyTap
  readonly figures: { calls: number; errors: number; ms: number }
}
type Call = (value: unknown, use: Use) => Promise<unknown>
/** One hook: its taps, and what runs them, made again when they change (tapable has no untap). */
interface Point {
  readonly kind: HookKind
  taps: Tap[]
  call: Call | undefined
}

export interface Hooks {
  /** Joins a hook; `order` is the plugin's place in the start order. */
  tap(ref: AnyHook, plugin: string, order: number, run: AnyTap, options?: TapOptions): () => void
  /** How the owner calls one hook. */
  caller(ref: AnyHook, by?: string): Call
  figures(): HookFigures[]
  /** Hooks that still have taps. */
  tapped(): string[]
  [Symbol.dispose](): void
}

/** Makes all hooks of a host: whoever taps first makes the point, before or after the owner's setup. */
export function createHooks(log: Log, limitMs: () => number): Hooks {
  const points = new Map<string, Point>()
  const figures = new Map<string, HookFigures & Tap['figures']>()
  const watch = createWatch()
  const pointOf = ({ id, kind }: AnyHook, by: string) => {
    const point = points.get(id) ?? made(points, id, { kind, taps: [], call: undefined })
    if (point.kind !== kind) throw contractMismatch(by, id, `${kind} against ${point.kind}`)
    return point
  }
  return {
    tap(ref, plugin, order, run, options = {}) {
      const point = pointOf(ref, plugin)
      const key = `${plugin} ${ref.id}`
      const count = figures.get(key) ?? made(figures, key, { plugin, hook: ref.id, calls: 0, errors: 0, ms: 0 })
      const tap: Tap = {
        plugin,
        hook: ref.id,
        order,
        stage: options.stage ?? 0,
        limitMs: options.limitMs ?? limitMs(),
        run,
        figures: count,
      }
      changeTaps(point, [...point.taps, tap])
      const others = () => point.taps.filter(other => other !== tap)
      return () => changeTaps(point, others())
    },
    caller(ref, by = 'the program') {
      const point = pointOf(ref, by)
      return (value, use) => {
        if (point.taps.length === 0) return ref.kind === 'waterfall' ? Promise.resolve(value) : NOTHING
        point.call ??= build(point, ref.kind, watch, log)
        return point.call(value, use)
      }
    },
    figures: () => [...figures.values()].map(count => ({ ...count })),
    tapped: () => [...points].filter(([, point]) => point.taps.length > 0).map(([id]) => id),
    [Symbol.dispose]: () => watch.stop(),
  }
}

const NOTHING = Promise.resolve(undefined)

function made<V>(map: Map<string, V>, key: string, value: V): V {
  map.set(key, value)
  return value
}

function changeTaps(point: Point, taps: Tap[]) {
  point.taps = taps.sort((a, b) => a.stage - b.stage || a.order - b.order)
  point.call = undefined
}

function build(point: Point, kind: HookKind, watch: Watch, log: Log): Call {
  const hook = newHook(kind)
  for (const tap of point.taps) hook.tapAsync(tap.plugin, counted(tap, watch, kind === 'series' ? log : undefined))
  return (value, use) => hook.promise(value, use)
}

type Step = (value: unknown, use: Use, done: (error: Error | null, answer?: unknown) => void) => void
interface TapableHook {
  tapAsync(name: string, run: Step): void
  promise(value: unknown, use: Use): Promise<unknown>
}
function newHook(kind: HookKind): TapableHook {
  if (kind === 'series') return new AsyncSeriesHook<[unknown, Use]>(['value', 'use']) as unknown as TapableHook
  if (kind === 'bail') return new AsyncSeriesBailHook<[unknown, Use], unknown>(['value', 'use']) as unknown as TapableHook
  return new AsyncSeriesWaterfallHook<[unknown, Use], unknown>(['value', 'use']) as unknown as TapableHook
}

/**
 * Counts calls, errors and time of a tap and limits its time; tapable's interception sees no end. A tap that answers at once costs no promise. One that
 * only looks on (its failure goes to `log`) may fail without breaking the work; tapable alone would stop at it.
 */
function counted(tap: Tap, watch: Watch, log: Log | undefined): Step {
  const { plugin, hook, limitMs, figures } = tap
  return (value, use, done) => {
    const begun = performance.now()
    const answered = (answer: unknown) => {
      figures.ms += performance.now() - begun
      done(null, answer)
    }
    const failed = (error: unknown) => {
      figures.ms += performance.now() - begun
      figures.errors++
      const failure = tapFailed(plugin, hook, error)
      if (log) log.warn({ err: failure, plugin, hook }, 'a tap failed')
      done(log ? null : failure)
    }
    figures.calls++
    let answer: unknown
    try {
      answer = tap.run(value, use)
    } catch (error) {
      return failed(error)
    }
    if (!(answer instanceof Promise)) return answered(answer)
    watch.within(limitMs, answer, () => tapTimeout(plugin, hook, limitMs)).then(answered, failed)
  }
}

interface Watch {
  within(limitMs: number, answer: Promise<unknown>, late: () => Error): Promise<unknown>
  stop(): void
}
interface Waiting {
  until: number
  fail(): void
}

/** One coarse timer for all taps that are under way: a timer a tap would cost more than most taps. */
function createWatch(): Watch {
  const waiting = new Set<Waiting>()
  let timer: NodeJS.Timeout | undefined
  const look = () => {
    const now = performance.now()
    for (const one of waiting) if (one.until <= now) one.fail()
    if (waiting.size === 0) stop()
  }
  const stop = () => {
    clearInterval(timer)
    timer = undefined
  }
  return {
    stop,
    within(limitMs, answer, late) {
      timer ??= setInterval(look, 50).unref()
      return new Promise((resolve, reject) => {
        const one: Waiting = { until: performance.now() + limitMs, fail: () => settle(reject, late()) }
        const settle = <V>(how: (value: V) => void, value: V) => {
          waiting.delete(one)
          how(value)
        }
        waiting.add(one)
        answer.then(
          value => settle(resolve, value),
          error => settle(reject, error)
        )
      })
    },
  }
}
