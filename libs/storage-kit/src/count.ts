import type { Counted, CountWindow } from '@svc/core/contracts'

/** A stored window, by its position in the list: its start (Unix milliseconds), its length, its hits. */
export type StoredWindow = readonly [began: number, ms: number, count: number]

/** The result of a hit. */
export interface Hit {
  readonly counted: Counted
  /** The list to store; the same list if nothing changed. */
  readonly kept: readonly StoredWindow[]
}

/** Counts a hit in all windows, or in none if one is full. Keeps stored windows beyond the requested ones. */
export function hit(before: readonly StoredWindow[], windows: readonly CountWindow[], now: number): Hit {
  const there = windows.map(({ ms }, at) => windowNow(before[at], ms, now))
  const isCounted = there.every(([, , count], at) => count < windows[at]!.limit)
  const after = isCounted ? there.map(([began, ms, count]): StoredWindow => [began, ms, count + 1]) : there
  const states = after.map(([began, ms, count]) => ({ count, endsAt: began + ms, leftMs: began + ms - now }))
  const counted = { counted: isCounted, windows: states }
  return { counted, kept: isCounted ? [...after, ...before.slice(after.length)] : resized(before, there) }
}

/** The present window; a new one if the former has expired by its own or the requested length. */
function windowNow(kept: StoredWindow | undefined, ms: number, now: number): StoredWindow {
  if (!kept) return [now, ms, 0]
  // A clock that was set back must not extend a window.
  const began = Math.min(kept[0], now)
  return began + Math.min(ms, kept[1]) <= now ? [now, ms, 0] : [began, ms, kept[2]]
}

/** A refused hit begins no window; it can only change the length of running ones. */
function resized(before: readonly StoredWindow[], there: readonly StoredWindow[]): readonly StoredWindow[] {
  const goesOn = (at: number) => there[at] !== undefined && there[at][2] > 0
  if (before.every((storedWindow, at) => !goesOn(at) || storedWindow[1] === there[at]![1])) return before
  return before.map((storedWindow, at) => (goesOn(at) ? there[at]! : storedWindow))
}

/** The latest end of these windows. */
export const endOf = (kept: readonly StoredWindow[]): number => Math.max(...kept.map(([began, ms]) => began + ms))
