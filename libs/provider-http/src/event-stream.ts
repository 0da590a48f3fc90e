import type { ModelEvent } from '@svc/core/contracts'

/** The source of the events of one answer. The stream calls `start` at most once, and `stop` once. */
export interface EventSource {
  start(): void
  pause(): void
  resume(): void
  stop(): void
}

type Result = IteratorResult<ModelEvent, undefined>
interface Waiting {
  readonly resolve: (result: Result) => void
  readonly reject: (reason: unknown) => void
}

const END: IteratorReturnResult<undefined> = { done: true, value: undefined }
/** The source pauses at MOST queued events and resumes at FEW. */
const MOST = 64
const FEW = 16

/**
 * The events of one answer, queued between the socket and the reader. A hand-written iterator: it returns a queued event at once, without the
 * extra microtasks of an async generator. The first `next` starts the source. The reader, the signal or the source ends the stream.
 */
export class EventStream implements AsyncIterableIterator<ModelEvent, undefined> {
  #source: EventSource | undefined
  readonly #signal: AbortSignal
  readonly #waiting: Waiting[] = []
  #events: ModelEvent[] = []
  #next = 0
  #begun = false
  #paused = false
  #over = false
  #error: { readonly reason: unknown } | undefined

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  /** Sets the source. Call it before the first `next`. */
  from(source: EventSource): this {
    this.#source = source
    return this
  }

  get over(): boolean {
    return this.#over
  }

  readonly push = (event: ModelEvent): void => {
    if (this.#over) return
    const waiting = this.#waiting.shift()
    if (waiting) return waiting.resolve({ done: false, value: event })
    this.#events.push(event)
    if (this.#paused || this.#events.length - this.#next < MOST) return
    this.#paused = true
    this.#source?.pause()
  }

  /** Ends the stream. The reader still gets the queued events, then the error. */
  end(error?: { readonly reason: unknown }): void {
    if (this.#over) return
    this.#over = true
    this.#error = error
    this.#signal.removeEventListener('abort', this.#abort)
    if (this.#waiting.length > 0) this.#release()
  }

  next(): Promise<Result> {
    const value = this.#events[this.#next]
    if (value !== undefined) return this.#give(value)
    if (this.#over) return this.#ended()
    if (!this.#begun && !this.#begin()) return this.#ended()
    return new Promise((resolve, reject) => void this.#waiting.push({ resolve, reject }))
  }

  return(): Promise<Result> {
    this.#drop()
    return Promise.resolve(END)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #give(value: ModelEvent): Promise<Result> {
    if (++this.#next === this.#events.length) {
      this.#events = []
      this.#next = 0
    }
    if (this.#paused && this.#events.length - this.#next <= FEW) {
      this.#paused = false
      this.#source?.resume()
    }
    return Promise.resolve({ done: false, value })
  }

  #begin(): boolean {
    this.#begun = true
    if (this.#signal.aborted) {
      this.#drop({ reason: this.#signal.reason })
      return false
    }
    this.#signal.addEventListener('abort', this.#abort)
    this.#source?.start()
    return true
  }

  readonly #abort = (): void => this.#drop({ reason: this.#signal.reason })

  /** Ends at once and drops the queued events. */
  #drop(error?: { readonly reason: unknown }): void {
    this.#events = []
    this.#next = 0
    if (this.#over) {
      this.#error = undefined
      return
    }
    this.end(error)
    if (this.#begun) this.#source?.stop()
  }

  /** Rejects once with the error. */
  #ended(): Promise<Result> {
    const error = this.#error
    this.#error = undefined
    // oxlint-disable-next-line prefer-promise-reject-errors -- the caller chooses the reason of an abort
    return error ? Promise.reject(error.reason) : Promise.resolve(END)
  }

  #release(): void {
    for (const { resolve, reject } of this.#waiting.splice(0)) void this.#ended().then(resolve, reject)
  }
}
