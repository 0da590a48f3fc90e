/** Work that nobody waits for, but the end of the one who began it. */
export class Chores {
  readonly #running = new Set<Promise<void>>()
  readonly #failed: (error: unknown) => void

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed
  }

  add(work: Promise<unknown>): void {
    const done: Promise<void> = work.then(() => {}, this.#failed).finally(() => this.#running.delete(done))
    this.#running.add(done)
  }

  /** Answers when all that was begun has ended. */
  async end(): Promise<void> {
    await Promise.all(this.#running)
  }
}
