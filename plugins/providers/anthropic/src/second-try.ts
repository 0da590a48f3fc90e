import type { ModelEvent } from '@svc/core/contracts'

type Events = AsyncIterableIterator<ModelEvent, undefined>
type Result = IteratorResult<ModelEvent, undefined>

/** The events of an answer; when it fails before its first one, `fix` may give another in its stead. */
export class SecondTry implements AsyncIterableIterator<ModelEvent, undefined> {
  #events: Events
  readonly #fix: (error: unknown) => Events | undefined
  #first: Promise<Result> | undefined
  #begun = false
  #left = false

  constructor(events: Events, fix: (error: unknown) => Events | undefined) {
    this.#events = events
    this.#fix = fix
  }

  next(): Promise<Result> {
    if (this.#begun) return this.#events.next()
    if (this.#first) return this.#first.then(() => this.#events.next())
    this.#first = this.#begin()
    return this.#first
  }

  return(): Promise<Result> {
    this.#left = true
    return this.#events.return?.() ?? Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async #begin(): Promise<Result> {
    try {
      return await this.#events.next()
    } catch (error) {
      const again = this.#left ? undefined : this.#fix(error)
      if (!again) throw error
      this.#events = again
      return await again.next()
    } finally {
      this.#begun = true
    }
  }
}
