import type { OpenSpan, Tracer } from './spans.ts'
import type { AnySlot, CallContext, TracedCalls } from './token.ts'

/** Statistics of the calls to one plugin's contributions to a slot, by method. */
export interface CallStats {
  readonly plugin: string
  readonly slot: string
  readonly method: string
  readonly calls: number
  readonly errors: number
  /** Total duration of calls in milliseconds. Streams are not timed: their duration depends on the reader. */
  readonly ms: number
}
type Stats = { calls: number; errors: number; ms: number }
type Method = (...args: unknown[]) => unknown

/** A contribution: its name in the slot, and its plugin. */
interface Contribution {
  readonly name: string
  readonly plugin: string
}

export interface CallCounter {
  /** Returns a copy of the item whose calls are counted and, as its slot says, traced. */
  item(token: AnySlot, item: unknown, by: Contribution): unknown
  stats(): CallStats[]
}

export interface CounterOptions {
  readonly accounting: boolean
  readonly tracer: Pick<Tracer, 'isOn' | 'start'>
}

/** Counts calls of slot items, as the hooks count calls of taps. */
export function createCallCounter({ accounting, tracer }: CounterOptions): CallCounter {
  const all = new Map<string, CallStats & Stats>()
  const statsOf = (plugin: string, slot: string, method: string) => {
    const key = `${plugin} ${slot}.${method}`
    const there = all.get(key) ?? { plugin, slot, method, calls: 0, errors: 0, ms: 0 }
    all.set(key, there)
    return there
  }
  return {
    stats: () => [...all.values()].map(item => ({ ...item })),
    item({ name, methods, local, traced }, item, by) {
      // A local item is passed on unchanged, because its consumer can compare it by identity.
      if (local || typeof item !== 'object' || item === null || (!accounting && !traced)) return item
      const counted = Object.entries(methods).flatMap(([word, kind]): [string, Method][] => {
        const method: unknown = Reflect.get(item, word)
        if (typeof method !== 'function') return []
        const plain: Method = (...args) => Reflect.apply(method, item, args)
        const spanned = traced?.methods.includes(word) ? tracedMethod(plain, kind, traced, by, tracer) : plain
        if (!accounting) return [[word, spanned]]
        const stats = statsOf(by.plugin, name, word)
        return [[word, kind === 'call' ? timedCall(spanned, stats) : countedStream(spanned, stats)]]
      })
      return Object.freeze({ ...item, ...Object.fromEntries(counted) })
    },
  }
}

function timedCall(method: Method, stats: Stats): Method {
  return (...args) => {
    const start = performance.now()
    const ended = () => void (stats.ms += performance.now() - start)
    const failed = () => {
      ended()
      stats.errors++
    }
    stats.calls++
    try {
      const answer = method(...args)
      // Counts on a separate branch of the promise, so that the caller does not wait for the counting.
      if (answer instanceof Promise) answer.then(ended, failed)
      else ended()
      return answer
    } catch (error) {
      failed()
      throw error
    }
  }
}

/** Counts only the start of a stream: a check of each item would cost more than most items. */
function countedStream(method: Method, stats: Stats): Method {
  return (...args) => {
    stats.calls++
    return method(...args)
  }
}

/** A method whose calls are spans, while a plugin takes spans. */
function tracedMethod(
  method: Method,
  kind: 'call' | 'stream',
  traced: TracedCalls,
  { name, plugin }: Contribution,
  tracer: CounterOptions['tracer']
): Method {
  const title = `${traced.span} ${name}`
  const attributes = { ...traced.attributes, [traced.attribute]: name, 'svc.plugin': plugin }
  return (...args) => {
    const ctx = args.at(-1) as CallContext | undefined
    if (!tracer.isOn || !(ctx?.signal instanceof AbortSignal)) return method(...args)
    const start = () => tracer.start(plugin, title, ctx, { attributes })
    const call = (span: OpenSpan) => method(...args.slice(0, -1), span.ctx)
    return kind === 'call' ? spannedCall(call, start(), traced) : spannedStream(call, start)
  }
}

function spannedCall(call: (span: OpenSpan) => unknown, span: OpenSpan, { failed }: TracedCalls): unknown {
  const succeeded = (answer: unknown) => {
    if (failed !== undefined && Object(answer)[failed] === true) span.fail('failed')
    span.end()
  }
  const broke = (error: unknown) => {
    span.fail(error)
    span.end()
  }
  try {
    const answer = call(span)
    if (answer instanceof Promise) answer.then(succeeded, broke)
    else succeeded(answer)
    return answer
  } catch (error) {
    broke(error)
    throw error
  }
}

/** The span lasts from the first read to the end of the stream, or until its reader leaves. */
async function* spannedStream(open: (span: OpenSpan) => unknown, start: () => OpenSpan): AsyncGenerator<unknown> {
  const span = start()
  try {
    return yield* open(span) as AsyncIterable<unknown>
  } catch (error) {
    span.fail(error)
    throw error
  } finally {
    span.end()
  }
}
