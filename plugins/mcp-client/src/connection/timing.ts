/** Time and chance, for tests. */
export interface Clock {
  now(): number
  /** Calls back once after so many milliseconds; answers what ends it. */
  after(ms: number, call: () => void): () => void
  /** From 0 to 1. */
  random(): number
}

/** How long to wait before the next attempt: `exponential` = min(30 s, 0.5 s · 2ⁿ), with full jitter; `linear` 1 s more each time, up to 30 s; `constant` 1 s. */
export type Backoff = 'exponential' | 'linear' | 'constant'

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

/** Tells at once, then at most once in so many milliseconds, however often there is something to tell. */
export interface Gathered {
  note(): void
  stop(): void
}

export function createGathered(clock: Clock, ms: number, tell: () => void): Gathered {
  let cancel: (() => void) | undefined
  let again = false
  function note(): void {
    again = cancel !== undefined
    if (again) return
    cancel = clock.after(ms, () => {
      cancel = undefined
      if (again) note()
    })
    tell()
  }
  return {
    note,
    stop() {
      cancel?.()
      again = false
    },
  }
}

const FIRST_MS = 500
const STEP_MS = 1_000
const MOST_MS = 30_000

/** Milliseconds before the attempt after `failures` failed ones; `random` is from 0 to 1. */
export function backoffMs(backoff: Backoff, failures: number, random: number): number {
  if (backoff === 'constant') return STEP_MS
  if (backoff === 'linear') return Math.min(MOST_MS, STEP_MS * (failures + 1))
  return Math.round(Math.min(MOST_MS, FIRST_MS * 2 ** failures) * random)
}

/** Waits for work no longer than the signal allows; throws what it aborted with. */
export async function raced<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  const onAbort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
