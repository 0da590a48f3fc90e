import { setImmediate } from 'node:timers/promises'

/** Others get their turn after so many milliseconds of work, or so many steps, whichever is first. */
const SPELL_MS = 4
const SPELL_STEPS = 32

/** Long work in short spells: after each, everything else that waits for the loop runs. */
export interface Yielder {
  /** Asked after each step: whether the spell is over. `if (breath.due()) await breath.take()` */
  due(): boolean
  /** Lets the others run. Throws what `signal` aborted with. */
  take(): Promise<void>
}

export function createYielder(signal: AbortSignal): Yielder {
  let since = performance.now()
  let steps = 0
  return {
    due: () => ++steps >= SPELL_STEPS || performance.now() - since > SPELL_MS,
    async take() {
      await setImmediate()
      signal.throwIfAborted()
      since = performance.now()
      steps = 0
    },
  }
}
