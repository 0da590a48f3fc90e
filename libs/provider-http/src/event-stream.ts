import type { ModelEvent } from '@svc/core/contracts'

/** Where the events of one answer come from. `stop` is called once, `start` at most once. */
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
/** So many events may wait for their reader before the source is paused, and so few before it goes on. */
const MOST = 64
const FEW = 16

/**
 * The events of one answer, between the socket that brings them and the reader that takes them. An iterator by hand: what is there is given at once,
 * and a token costs no turn of an async generator. It begins with the first `next`, and ends with the reader, the signal, or the source.
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

  /** Says where the events come from, before the first `next`. */
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

  /** No more events come; what is queued is still given, and then the error. */
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

  /** Ends at once: what is queued is not wanted any more. */
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
    // oxlint-disable-next-line prefer-promise-reject-errors -- an abort's reason is whatever the caller aborted with
    return error ? Promise.reject(error.reason) : Promise.resolve(END)
  }

  #release(): void {
    for (const one of this.#waiting.splice(0)) void this.#ended().then(one.resolve, one.reject)
  }
}
