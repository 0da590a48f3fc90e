import type { Clock } from './options.ts'

/** What timers can wait for: with more Node calls at once. */
const LONGEST_MS = 2 ** 31 - 1

/** The system's time. */
export const CLOCK: Clock = {
  now: () => Date.now(),
  after(ms, call) {
    const timer = setTimeout(call, Math.min(ms, LONGEST_MS))
    return () => clearTimeout(timer)
  },
  random: () => Math.random(),
}

/** A time that can be moved on. */
export interface Deadline {
  /** Counts anew from now, but not past the most. */
  extend(): void
  /** Stops the count; `extend` goes on with it. */
  stop(): void
}

/** Calls `late` once `ms` have passed since it was last extended, or `mostMs` in all; what passes while it is stopped does not count. */
export function createDeadline(clock: Clock, ms: number, mostMs: number, late: (ms: number) => void): Deadline {
  let end = clock.now() + mostMs
  let stoppedAt: number | undefined
  let stop: (() => void) | undefined
  const extend = () => {
    stop?.()
    if (stoppedAt !== undefined) end += clock.now() - stoppedAt
    stoppedAt = undefined
    const left = Math.max(0, Math.min(ms, end - clock.now()))
    stop = clock.after(left, () => late(left < ms ? mostMs : ms))
  }
  extend()
  return {
    extend,
    stop() {
      stoppedAt ??= clock.now()
      stop?.()
    },
  }
}
