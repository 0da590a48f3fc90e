import type { Json } from '@svc/core/contracts'

/** What ended a wait; `event` is the one that was kept until then. */
export type Woken = { readonly by: 'time' } | { readonly by: 'event' | 'answer'; readonly data: Json; readonly event?: string }

/** What a step waits for. */
export interface Sleep {
  readonly step: string
  readonly node: string
  readonly since: number
  readonly until?: number
  readonly event?: string
}

interface Sleeper extends Sleep {
  readonly wake: (woken: Woken) => void
  readonly leave: (reason: unknown) => void
  readonly timer: NodeJS.Timeout | undefined
}

/** The longest time that a timer of Node takes; a run that waits for longer is parked long before. */
const LONGEST_MS = 2 ** 31 - 1

/** The steps of one run that wait here, for time, events or answers. */
export class Waits {
  readonly #sleepers = new Map<string, Sleeper>()
  readonly #onTime: (step: string) => void

  /** `onTime` is told when a step's time has come: whether it wakes then is decided there. */
  constructor(onTime: (step: string) => void) {
    this.#onTime = onTime
  }

  get size(): number {
    return this.#sleepers.size
  }
  /** When the next one's time comes (Unix milliseconds). */
  get nextAt(): number | undefined {
    const times = [...this.#sleepers.values()].flatMap(({ until }) => (until === undefined ? [] : [until]))
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** Waits. Throws what the signal aborts with, and what everybody has to leave with. */
  async sleep(sleep: Sleep, signal: AbortSignal): Promise<Woken> {
    signal.throwIfAborted()
    const woken = Promise.withResolvers<Woken>()
    const { step, until } = sleep
    const onAbort = () => woken.reject(signal.reason)
    const timer =
      until === undefined || until - Date.now() > LONGEST_MS
        ? undefined
        : setTimeout(() => this.#onTime(step), Math.max(0, until - Date.now()))
    this.#sleepers.set(step, { ...sleep, wake: woken.resolve, leave: woken.reject, timer })
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      return await woken.promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      this.#sleepers.delete(step)
    }
  }

  has(step: string): boolean {
    return this.#sleepers.has(step)
  }
  wake(step: string, woken: Woken): void {
    this.#sleepers.get(step)?.wake(woken)
  }
  /** Everybody leaves. */
  end(reason: unknown): void {
    for (const one of this.#sleepers.values()) one.leave(reason)
  }
}
