import type { Counted, CountWindow } from '@svc/core/contracts'

/** A window as a store keeps it, under its place in the list: when it began (Unix milliseconds), how long it lasts, its hits. */
export type KeptWindow = readonly [began: number, ms: number, count: number]

/** What a hit came to. */
export interface Hit {
  readonly counted: Counted
  /** What is to be kept from now on; the very list that was there when nothing changed. */
  readonly kept: readonly KeptWindow[]
}

/** Counts a hit in all windows, or in none where one is full. What is kept of windows beyond those asked for stays. */
export function hit(before: readonly KeptWindow[], windows: readonly CountWindow[], now: number): Hit {
  const there = windows.map(({ ms }, at) => windowNow(before[at], ms, now))
  const isCounted = there.every(([, , count], at) => count < windows[at]!.limit)
  const after = isCounted ? there.map(([began, ms, count]): KeptWindow => [began, ms, count + 1]) : there
  const counted = { counted: isCounted, windows: after.map(([began, ms, count]) => ({ count, endsAt: began + ms })) }
  return { counted, kept: isCounted ? [...after, ...before.slice(after.length)] : resized(before, there) }
}

/** The window as it is now; a new one where the former is over by its own length or by the one that is asked for. */
function windowNow(kept: KeptWindow | undefined, ms: number, now: number): KeptWindow {
  if (!kept) return [now, ms, 0]
  // A clock that was set back must not make a window longer than it is.
  const began = Math.min(kept[0], now)
  return began + Math.min(ms, kept[1]) <= now ? [now, ms, 0] : [began, ms, kept[2]]
}

/** A hit that was refused begins no window; only those that go on may have another length than before. */
function resized(before: readonly KeptWindow[], there: readonly KeptWindow[]): readonly KeptWindow[] {
  const goesOn = (at: number) => there[at] !== undefined && there[at][2] > 0
  if (before.every((one, at) => !goesOn(at) || one[1] === there[at]![1])) return before
  return before.map((one, at) => (goesOn(at) ? there[at]! : one))
}

/** When the last of these windows ends. */
export const endOf = (kept: readonly KeptWindow[]): number => Math.max(...kept.map(([began, ms]) => began + ms))
