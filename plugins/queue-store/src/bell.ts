/** Wakes those who wait for something to do. */
export class Bell {
  readonly #waiting = new Set<() => void>()

  ring(): void {
    for (const wake of this.#waiting) wake()
  }

  /** Answers when it rings, after so long, or with the signal. */
  async next(ms: number, signal: AbortSignal): Promise<void> {
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
