/** Counts in fixed windows that begin with the first count, for a bounded number of keys: where room is short, the oldest window gives way. */
export interface Tally {
  /** Counts one more; answers the count in the window. */
  add(key: string): number
  /** The count in the window as it stands. */
  count(key: string): number
  /** Whole seconds until the window of this key ends. */
  secondsLeft(key: string): number
}

interface Window {
  count: number
  readonly ends: number
}

export function createTally(windowMs: number, most: number, now: () => number = () => performance.now()): Tally {
  const windows = new Map<string, Window>()
  const begin = (key: string, at: number) => {
    windows.delete(key) // a window that begins anew is the youngest
    if (windows.size >= most) windows.delete(windows.keys().next().value!)
    windows.set(key, { count: 1, ends: at + windowMs })
    return 1
  }
  return {
    add(key) {
      const at = now()
      const open = windows.get(key)
      return open && open.ends > at ? ++open.count : begin(key, at)
    },
    count(key) {
      const open = windows.get(key)
      return open && open.ends > now() ? open.count : 0
    },
    secondsLeft(key) {
      const open = windows.get(key)
      return open ? Math.max(1, Math.ceil((open.ends - now()) / 1000)) : 1
    },
  }
}
