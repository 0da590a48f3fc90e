import { setImmediate } from 'node:timers/promises'

/** Time slice before yielding. */
const SLICE_MS = 4

/** Yields to other work in a long loop: `if (yielder.isDue()) await yielder.take()`. */
export interface Yielder {
  isDue(): boolean
  /** Throws the reason of the signal. */
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
