import type { AnySlot } from './token.ts'

/** What the calls of one plugin's contributions to a slot have cost, method by method. */
export interface CallStats {
  readonly plugin: string
  readonly slot: string
  readonly method: string
  readonly calls: number
  readonly errors: number
  /** Of calls; how long a stream takes is its reader's matter. */
  readonly ms: number
}
type Stats = { calls: number; errors: number; ms: number }
type Method = (...args: unknown[]) => unknown

export interface CallCounter {
  /** An item like the given one, whose calls are counted. */
  item(token: AnySlot, item: unknown, plugin: string): unknown
  stats(): CallStats[]
}

/** Counts what plugins do in slots, as the hooks count what they do there. */
export function createCallCounter(): CallCounter {
  const all = new Map<string, CallStats & Stats>()
  const statsOf = (plugin: string, slot: string, method: string) => {
    const key = `${plugin} ${slot}.${method}`
    const there = all.get(key) ?? { plugin, slot, method, calls: 0, errors: 0, ms: 0 }
    all.set(key, there)
    return there
  }
  return {
    stats: () => [...all.values()].map(one => ({ ...one })),
    item({ name, methods, local }, item, plugin) {
      // what is handed over raw may be told by identity
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
      // beside the caller's own way: what waits for the answer waits no longer for being counted
      if (answer instanceof Promise) answer.then(ended, failed)
      else ended()
      return answer
    } catch (error) {
      failed()
      throw error
    }
  }
}

/** A stream: a look at each of its items would cost more than most of them. */
function countedStream(item: object, method: Method, stats: Stats): Method {
  return (...args) => {
    stats.calls++
    return Reflect.apply(method, item, args)
  }
}
