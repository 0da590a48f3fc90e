import type { Clock } from './options.ts'

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
