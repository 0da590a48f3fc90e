/** Timers of one owner. */
export interface Timers {
  later(ms: number, work: () => unknown): void
  clear(): void
}

export function createTimers(): Timers {
  const timers = new Set<NodeJS.Timeout>()
  return {
    later(ms, work) {
      const timer = setTimeout(() => {
        timers.delete(timer)
        work()
      }, ms)
      timers.add(timer)
    },
    clear() {
      for (const timer of timers) clearTimeout(timer)
    },
  }
}
