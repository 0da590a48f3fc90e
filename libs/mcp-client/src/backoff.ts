import type { Backoff } from './options.ts'

const FIRST_MS = 500
const STEP_MS = 1_000
const MOST_MS = 30_000

/** Milliseconds before the attempt after `failures` failed ones; `random` is from 0 to 1. */
export function backoffMs(backoff: Backoff, failures: number, random: number): number {
  if (backoff === 'constant') return STEP_MS
  if (backoff === 'linear') return Math.min(MOST_MS, STEP_MS * (failures + 1))
  return Math.round(Math.min(MOST_MS, FIRST_MS * 2 ** failures) * random)
}
