import type { AnySlot } from './token.ts'

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

export interface CallCounter {
  /** Returns a copy of the item whose calls are counted. */
  item(token: AnySlot, item: unknown, plugin: string): unknown
  stats(): CallStats[]
}

/** Counts calls of slot items, as the hooks count calls of taps. */
export function createCallCounter(): CallCounter {
  const all = new Map<string, CallStats & Stats>()
  const statsOf = (plugin: string, slot: string, method: string) => {
    const key = `${plugin} ${slot}.${method}`
    const there = all.get(key) ?? { plugin, slot, method, calls: 0, errors: 0, ms: 0 }
    all.set(key, there)
    return there
  }
  return {
    stats: () => [...all.values()].map(item => ({ ...item })),
    item({ name, methods, local }, item, plugin) {
      // A local item is passed on unchanged, because its consumer can compare it by identity.
      if (local || typeof item !== 'object' || item === null) return item
      const counted = Object.entries(methods).flatMap(([word, kind]): [string, Method][] => {
        const method: unknown = Reflect.get(item, word)
        if (typeof method !== 'function') return []
        const stats = statsOf(plugin, name, word)
        return [[word, kind === 'call' ? timedCall(item, method as Method, stats) : countedStream(item, method as Method, stats)]]
      })
      return Object.freeze({ ...item, ...Object.fromEntries(counted) })
    },
  }
}

function timedCall(item: object, method: Method, stats: Stats): Method {
  return (...args) => {
    const start = performance.now()
    const ended = () => void (stats.ms += performance.now() - start)
    const failed = () => {
      ended()
      stats.errors++
    }
    stats.calls++
    try {
      const answer = Reflect.apply(method, item, args)
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
function countedStream(item: object, method: Method, stats: Stats): Method {
  return (...args) => {
    stats.calls++
    return Reflect.apply(method, item, args)
  }
}
