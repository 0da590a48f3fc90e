import { contractMismatch } from './errors.ts'
import { type Call, compileHook, createWatch, type Tap, type Ways } from './hook-run.ts'
import type { Log } from './log.ts'
import type { TapOptions } from './plugin.ts'
import type { AnyHook, HookKind } from './token.ts'

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
  const points = new Map<string, Point>()
  const stats = new Map<string, HookStats & Tap['stats']>()
  const watch = createWatch()
  const ways: Ways = { log, watch, accounting }
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

function changeTaps(point: Point, taps: Tap[]) {
  point.taps = taps.sort((a, b) => a.stage - b.stage || a.order - b.order)
  point.call = undefined
}
