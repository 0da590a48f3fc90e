/** So long at the most. */
const LULL_MS = 5

/** A short wait that ends early when something is done anyway: what waited for it shares its commit. */
export class IdleGate {
  #waiting: PromiseWithResolvers<void> | undefined
  #timer: NodeJS.Timeout | undefined

  wait(): Promise<void> {
    this.#waiting ??= Promise.withResolvers<void>()
    this.#timer ??= setTimeout(() => this.end(), LULL_MS)
    return this.#waiting.promise
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#waiting?.resolve()
    this.#waiting = this.#timer = undefined
  }
}
