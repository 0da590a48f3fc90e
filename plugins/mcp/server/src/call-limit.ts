import type { CallContext } from '@svc/core'
import { callsWaiting } from './errors.ts'

/** Limits for concurrent calls. */
export interface RunningLimits {
  readonly atOnce: number
  /** Concurrent calls of one tool. */
  readonly perTool: number
  /** Maximum length of the queue. Further calls are rejected. */
  readonly waiting: number
}

interface Waiting {
  readonly name: string
  readonly go: () => void
}

/** Limits concurrent calls, in all and per tool. The queue is first in, first out among the calls whose tool is below its limit. */
export class CallLimit {
  readonly #limits: RunningLimits
  readonly #taken = new Map<string, number>()
  readonly #waiting = new Set<Waiting>()
  #all = 0

  constructor(limits: RunningLimits) {
    this.#limits = limits
  }

  /** Takes a slot. Returns a promise if the call must wait. Throws RATE_LIMITED and the reason of an aborted signal. */
  take(name: string, { signal }: Pick<CallContext, 'signal'>): void | Promise<void> {
    if (this.#isFree(name)) return this.#occupy(name)
    const { waiting } = this.#limits
    if (this.#waiting.size >= waiting) throw callsWaiting(waiting)
    return new Promise((resolve, reject) => {
      const one: Waiting = {
        name,
        go: () => {
          signal.removeEventListener('abort', leave)
          this.#waiting.delete(one)
          this.#occupy(name)
          resolve()
        },
      }
      const leave = () => {
        this.#waiting.delete(one)
        reject(signal.reason)
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#waiting.add(one)
    })
  }

  leave(name: string): void {
    this.#all--
    const left = this.#taken.get(name)! - 1
    if (left > 0) this.#taken.set(name, left)
    else this.#taken.delete(name)
    for (const one of this.#waiting) if (this.#isFree(one.name)) return one.go()
  }

  #isFree(name: string): boolean {
    return this.#all < this.#limits.atOnce && (this.#taken.get(name) ?? 0) < this.#limits.perTool
  }

  #occupy(name: string): void {
    this.#all++
    this.#taken.set(name, (this.#taken.get(name) ?? 0) + 1)
  }
}
