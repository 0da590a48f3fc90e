import { setTimeout as pause } from 'node:timers/promises'

/** A change that is not told is looked for. */
const LOOK_MS = 250

/** Something that changes, for those who wait for it. */
export class News {
  #next = Promise.withResolvers<void>()

  tell(): void {
    const { resolve } = this.#next
    this.#next = Promise.withResolvers()
    resolve()
  }

  /** Answers with the next change, at the latest soon. */
  async next(signal: AbortSignal): Promise<void> {
    const ending = new AbortController()
    const soon = pause(LOOK_MS, undefined, { signal: AbortSignal.any([signal, ending.signal]) }).catch(() => {})
    await Promise.race([this.#next.promise, soon])
    ending.abort()
  }
}
