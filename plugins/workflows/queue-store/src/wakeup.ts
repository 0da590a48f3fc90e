/** Wakes those who wait for something to do. */
export class Wakeup {
  readonly #waiting = new Set<() => void>()
  #rings = 0

  /** How often it has rung: whoever looks for work notes it before, and so misses no ring while he looks. */
  get rings(): number {
    return this.#rings
  }

  ring(): void {
    this.#rings += 1
    for (const wake of this.#waiting) wake()
  }

  /** Answers when it has rung more often than that, after so long, or with the signal. */
  async after(rings: number, ms: number, signal: AbortSignal): Promise<void> {
    if (this.#rings !== rings || signal.aborted) return
    const rung = Promise.withResolvers<void>()
    const wake = () => rung.resolve()
    const timer = setTimeout(wake, ms)
    this.#waiting.add(wake)
    signal.addEventListener('abort', wake, { once: true })
    try {
      await rung.promise
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(wake)
      signal.removeEventListener('abort', wake)
    }
  }
}
