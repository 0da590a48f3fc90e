import type { Answer } from './wire.ts'

type Settle = PromiseWithResolvers<Answer>

/** Those who wait for an answer of the writer, by number. */
export interface Pending {
  readonly size: number
  has(id: number): boolean
  /** Someone more, who may give up. */
  add(signal: AbortSignal | undefined): { readonly id: number; readonly promise: Promise<Answer> }
  /** Answers one, unless it has given up. */
  settle(id: number, finish: (settle: Settle) => void): void
  failAll(error: unknown): void
  /** Once nobody waits any more. */
  allSettled(): Promise<void>
}

interface Waiting {
  readonly settle: Settle
  /** All that may give up with the same signal. */
  readonly beside: Set<number> | undefined
}

/** Makes an empty table; `emptied` hears whenever nobody waits any more. */
export function createPending(emptied: () => void): Pending {
  const waiting = new Map<number, Waiting>()
  let last = 0
  let idle: (() => void) | undefined

  const settle: Pending['settle'] = (id, finish) => {
    const one = waiting.get(id)
    if (!one) return
    waiting.delete(id)
    one.beside?.delete(id)
    finish(one.settle)
    if (waiting.size > 0) return
    emptied()
    idle?.()
  }
  // One listener a signal: adding another looks through all that are there, and a plugin writes with one signal all its life.
  const bySignal = new WeakMap<AbortSignal, Set<number>>()
  const besideOf = (signal: AbortSignal): Set<number> => {
    const there = bySignal.get(signal)
    if (there) return there
    const ids = new Set<number>()
    bySignal.set(signal, ids)
    const abort = () => {
      for (const id of ids) settle(id, s => s.reject(signal.reason))
    }
    signal.addEventListener('abort', abort, { once: true })
    return ids
  }
  return {
    get size() {
      return waiting.size
    },
    has: id => waiting.has(id),
    add(signal) {
      const id = ++last
      const promises = Promise.withResolvers<Answer>()
      waiting.set(id, { settle: promises, beside: signal && besideOf(signal).add(id) })
      return { id, promise: promises.promise }
    },
    settle,
    failAll(error) {
      for (const id of waiting.keys()) settle(id, s => s.reject(error))
    },
    async allSettled() {
      if (waiting.size > 0) await new Promise<void>(resolve => (idle = resolve))
    },
  }
}
