import { mock } from 'node:test'

/** The time of this process, moved by hand: what looks at intervals and at `performance.now()` sees only what `tick` gives. */
export interface HandClock extends Disposable {
  /** So many milliseconds pass, and all that looks meanwhile looks. */
  tick(ms: number): void
}

/** What looks at its time looks at least so often. */
const STEP_MS = 10

export function handClock(): HandClock {
  let now = performance.now()
  const time = mock.method(performance, 'now', () => now)
  mock.timers.enable({ apis: ['setInterval'] })
  return {
    tick(ms) {
      for (const end = now + ms; now < end; ) {
        const step = Math.min(STEP_MS, end - now)
        now += step
        mock.timers.tick(step)
      }
    },
    [Symbol.dispose]() {
      time.mock.restore()
      mock.timers.reset()
    },
  }
}
