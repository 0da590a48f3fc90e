import type { CountState, Counts, CountWindow } from '@svc/core/contracts'

/** Counts, by a clock that the test sets; says how often it was asked. */
export interface ClockedCounts extends Counts {
  now: number
  asked: number
}

export function createClockedCounts(now = 1_700_000_000_000): ClockedCounts {
  const clients = new Map<string, Map<number, CountState>>()
  const stateOf = (key: string, { ms }: CountWindow): CountState => {
    const state = clients.get(key)?.get(ms)
    return state && state.endsAt > counts.now
      ? { ...state, leftMs: state.endsAt - counts.now }
      : { count: 0, endsAt: counts.now + ms, leftMs: ms }
  }
  const counts: ClockedCounts = {
    now,
    asked: 0,
    async count(key, windows) {
      counts.asked++
      const before = windows.map(window => stateOf(key, window))
      if (windows.some(({ limit }, at) => before[at]!.count >= limit)) return { counted: false, windows: before }
      const after = before.map(state => ({ ...state, count: state.count + 1 }))
      clients.set(key, new Map(windows.map(({ ms }, at) => [ms, after[at]!])))
      return { counted: true, windows: after }
    },
  }
  return counts
}
