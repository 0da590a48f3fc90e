import type { CallContext } from '@svc/core'
import { callsWaiting } from './errors.ts'

/** How many calls run at once. */
export interface RunningLimits {
  readonly atOnce: number
  /** Of one tool. */
  readonly perTool: number
  /** So many more wait for a place; further ones are refused. */
  readonly waiting: number
}

interface Waiting {
  readonly name: string
  readonly go: () => void
}

/** The places of running calls. Who finds none waits, first come first served among those whose tool has room. */
export class CallLimit {
  readonly #limits: RunningLimits
  readonly #taken = new Map<string, number>()
  readonly #waiting = new Set<Waiting>()
  #all = 0

  constructor(limits: RunningLimits) {
    this.#limits = limits
  }

  /** Takes a place; a promise where one must be waited for. Throws RATE_LIMITED, and what the signal aborted with. */
  take(name: string, { signal }: Pick<CallContext, 'signal'>): void | Promise<void> {
    if (this.#hasRoom(name)) return this.#sit(name)
    const { waiting } = this.#limits
    if (this.#waiting.size >= waiting) throw callsWaiting(waiting)
    return new Promise((resolve, reject) => {
      const one: Waiting = {
        name,
        go: () => {
          signal.removeEventListener('abort', leave)
          this.#waiting.delete(one)
          this.#sit(name)
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
    for (const one of this.#waiting) if (this.#hasRoom(one.name)) return one.go()
  }

  #hasRoom(name: string): boolean {
    return this.#all < this.#limits.atOnce && (this.#taken.get(name) ?? 0) < this.#limits.perTool
  }

  #sit(name: string): void {
    this.#all++
    this.#taken.set(name, (this.#taken.get(name) ?? 0) + 1)
  }
}
