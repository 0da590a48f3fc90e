import { setImmediate } from 'node:timers/promises'

/** Milliseconds of work after which others get their turn. */
const SPELL_MS = 4

/** Long work in short spells: after each, everything else that waits for the loop runs. */
export interface Breath {
  /** Whether the spell is over: `if (breath.due()) await breath.take()`. */
  due(): boolean
  /** Lets the others run. Throws what `signal` aborted with. */
  take(): Promise<void>
}

export function createBreath(signal: AbortSignal): Breath {
  let since = performance.now()
  return {
    due: () => performance.now() - since > SPELL_MS,
    async take() {
      await setImmediate()
      signal.throwIfAborted()
      since = performance.now()
    },
  }
}
