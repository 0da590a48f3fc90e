/** Time and randomness; tests replace them. */
export interface Clock {
  now(): number
  /** Calls back once after `ms` milliseconds. Returns a function that cancels it. */
  after(ms: number, call: () => void): () => void
  /** From 0 to 1. */
  random(): number
}

/** The longest timer of Node: a longer one fires at once. */
const LONGEST_MS = 2 ** 31 - 1

/** The system clock. */
export const CLOCK: Clock = {
  now: () => Date.now(),
  after(ms, call) {
    const timer = setTimeout(call, Math.min(ms, LONGEST_MS))
    return () => clearTimeout(timer)
  },
  random: () => Math.random(),
}

/** The wait before the next attempt: `exponential` = min(30 s, 0.5 s · 2ⁿ) with full jitter; `linear` adds 1 s each time, up to 30 s; `constant` 1 s. */
export type Backoff = 'exponential' | 'linear' | 'constant'

const FIRST_MS = 500
const STEP_MS = 1_000
const MAX_MS = 30_000

/** Milliseconds before the next attempt after `failures` failures; `random` is from 0 to 1. */
export function backoffMs(backoff: Backoff, failures: number, random: number): number {
  if (backoff === 'constant') return STEP_MS
  if (backoff === 'linear') return Math.min(MAX_MS, STEP_MS * (failures + 1))
  return Math.round(Math.min(MAX_MS, FIRST_MS * 2 ** failures) * random)
}

/** Waits for `work` until the signal aborts; throws the reason of the abort. */
export async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
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

/** Waits `ms` milliseconds; throws the reason of the abort. */
export async function wait(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const cancel = clock.after(ms, resolve)
  await abortable(promise, signal).finally(cancel)
}

/** A time limit that can be extended and paused. */
export interface Deadline {
  /** Starts the count again from now, but never past the total; also ends a pause. */
  extend(): void
  /** Pauses the count until `extend`. */
  stop(): void
}

/** Calls `late` once `ms` have passed since the last `extend`, or `totalMs` in all. Paused time does not count. */
export function createDeadline(clock: Clock, ms: number, totalMs: number, late: (ms: number) => void): Deadline {
  let end = clock.now() + totalMs
  let stoppedAt: number | undefined
  let cancel: (() => void) | undefined
  const extend = () => {
    cancel?.()
    if (stoppedAt !== undefined) end += clock.now() - stoppedAt
    stoppedAt = undefined
    const left = Math.max(0, Math.min(ms, end - clock.now()))
    cancel = clock.after(left, () => late(left < ms ? totalMs : ms))
  }
  extend()
  return {
    extend,
    stop() {
      stoppedAt ??= clock.now()
      cancel?.()
    },
  }
}

/** Calls back at once, then at most once in `ms` milliseconds, however often it is triggered. */
export function createThrottle(clock: Clock, ms: number, call: () => void): { trigger(): void; stop(): void } {
  let cancel: (() => void) | undefined
  let again = false
  function trigger(): void {
    again = cancel !== undefined
    if (again) return
    cancel = clock.after(ms, () => {
      cancel = undefined
      if (again) trigger()
    })
    call()
  }
  return {
    trigger,
    stop() {
      cancel?.()
      again = false
    },
  }
}
