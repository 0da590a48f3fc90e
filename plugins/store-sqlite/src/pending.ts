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
  readonly undo: (() => void) | undefined
}

/** Makes an empty table. */
export function createPending(): Pending {
  const waiting = new Map<number, Waiting>()
  let last = 0
  let idle: (() => void) | undefined

  const settle: Pending['settle'] = (id, finish) => {
    const one = waiting.get(id)
    if (!one) return
    waiting.delete(id)
    one.undo?.()
    finish(one.settle)
    if (waiting.size === 0) idle?.()
  }
  return {
    get size() {
      return waiting.size
    },
    has: id => waiting.has(id),
    add(signal) {
      const id = ++last
      const promises = Promise.withResolvers<Answer>()
      const abort = () => settle(id, s => s.reject(signal?.reason))
      signal?.addEventListener('abort', abort, { once: true })
      waiting.set(id, { settle: promises, undo: signal && (() => signal.removeEventListener('abort', abort)) })
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
