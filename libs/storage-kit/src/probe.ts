import type { CheckReport, StoreProbe } from '@svc/core/contracts'

/** From here on, the clock of a machine counts as wrong. */
const WRONG_MS = 1000

/**
 * The time in Unix milliseconds by the monotonic clock of this process: the clock of a store in memory. Setting the clock of the
 * machine does not change it.
 */
export const steadyNow = (): number => Math.round(performance.timeOrigin + performance.now())

/**
 * The clock of the store minus the clock of this process: `storeMs` was read between `before` and `after`, in Unix
 * milliseconds. 0 if the difference is within what was measured.
 */
export function clockOffset(storeMs: number, before: number, after: number): number {
  // both clocks are rounded to milliseconds
  if (storeMs < before - 1) return Math.round(storeMs - before)
  return storeMs > after + 1 ? Math.round(storeMs - after) : 0
}

/** What the health check of a store reports about an answered probe. */
export function storeReport({ kind, durable, scope, role, clockOffsetMs }: StoreProbe): CheckReport {
  const detail = { kind, durable, scope, role, clock_offset_ms: clockOffsetMs }
  if (role !== 'primary') return { status: 'unhealthy', reason: 'the store is a replica: it accepts no writes', detail }
  if (Math.abs(clockOffsetMs) < WRONG_MS) return { status: 'healthy', detail }
  const direction = clockOffsetMs < 0 ? 'ahead of' : 'behind'
  const reason = `the clock of this machine is ${Math.abs(clockOffsetMs)} ms ${direction} the clock of the store; synchronize it (NTP)`
  return { status: 'degraded', reason, detail }
}
