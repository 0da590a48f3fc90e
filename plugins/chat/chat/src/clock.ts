/** Something whose time is limited: looked at a few times a second while it lasts. */
export interface Timed {
  look(now: number): void
}

/** One coarse timer for all model calls that are under way: timers of their own would cost more than many a call. */
export interface Clock {
  watch(one: Timed): void
  forget(one: Timed): void
}

const STEP_MS = 20

export function createClock(): Clock {
  const timed = new Set<Timed>()
  let timer: NodeJS.Timeout | undefined
  const look = () => {
    const now = performance.now()
    for (const one of timed) one.look(now)
    if (timed.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
  return {
    watch(one) {
      timed.add(one)
      timer ??= setInterval(look, STEP_MS).unref()
    },
    forget: one => void timed.delete(one),
  }
}
