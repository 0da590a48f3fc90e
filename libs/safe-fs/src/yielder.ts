import { setImmediate } from 'node:timers/promises'

/** How long one may work before others get their turn. */
const SLICE_MS = 4

/** Lets others work in between, in a loop that may be long: `if (breath.isDue()) await breath.take()`. */
export interface Yielder {
  isDue(): boolean
  /** Throws what the signal aborted with. */
  take(): Promise<void>
}

export function createYielder(signal: AbortSignal): Yielder {
  let since = performance.now()
  return {
    isDue: () => performance.now() - since > SLICE_MS,
    async take() {
      await setImmediate()
      signal.throwIfAborted()
      since = performance.now()
    },
  }
}
