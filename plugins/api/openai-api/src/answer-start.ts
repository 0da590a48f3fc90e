import type { ModelCallBegun, ModelCallEvent } from '@svc/core/contracts'

/** Most characters of original events that wait for the first part of an answer. */
const MOST_HELD = 1_048_576

/**
 * The beginning of an answer. Until its first part, another attempt can replace it, so nothing of it must reach the client.
 * `read` returns the first part. Then `early` has the original events before it, and the reader goes on with the events.
 */
export class AnswerStart {
  readonly #events: AsyncIterator<ModelCallEvent>
  #held = 0
  /** The model of the last attempt. */
  start: ModelCallBegun | undefined
  early: ModelCallEvent[] = []

  constructor(events: AsyncIterator<ModelCallEvent>) {
    this.#events = events
  }

  /** Throws the error of the call. Returns `undefined` at the end of the events. */
  async read(): Promise<ModelCallEvent | undefined> {
    for (;;) {
      const { done, value } = await this.#events.next()
      if (done) return undefined
      if (value.type === 'start') {
        this.start = value
        this.early = []
        this.#held = 0
      } else if (value.type === 'native' && this.#held <= MOST_HELD) {
        this.early.push(value)
        this.#held += JSON.stringify(value.data).length
        // the end of a call that failed is followed by its error
      } else if (value.type !== 'end' || value.status === 'completed') return value
    }
  }
}

/** Waits for the promise, at most so long. Throws what it throws in this time. */
export async function settledIn(ms: number, promise: Promise<unknown>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  try {
    await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
