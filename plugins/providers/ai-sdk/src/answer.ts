import type { EventStream } from '@svc/provider-http'
import type { Events } from './events.ts'
import type { LanguageModel, StreamPart } from './sdk.ts'

/** What one answer is read with. */
export interface AnswerParts {
  readonly events: EventStream
  readonly taken: Events
  /** Asks the model; what it opens ends with the signal. */
  readonly ask: (signal: AbortSignal) => ReturnType<LanguageModel['doStream']>
  readonly failureOf: (error: unknown) => Error
}

const STOPPED = new DOMException('nobody reads any more', 'AbortError')

/** Reads the stream of a model's answer into events, as fast as they are taken. */
export class Answer {
  readonly #parts: AnswerParts
  readonly #ending = new AbortController()
  #reader: ReadableStreamDefaultReader<StreamPart> | undefined
  #paused: PromiseWithResolvers<void> | undefined

  constructor(parts: AnswerParts) {
    this.#parts = parts
  }

  start(): void {
    const { events, failureOf } = this.#parts
    this.#read().then(
      () => events.end(),
      error => {
        events.end({ reason: failureOf(error) })
        this.stop()
      }
    )
  }

  pause(): void {
    this.#paused ??= Promise.withResolvers<void>()
  }

  resume(): void {
    this.#paused?.resolve()
    this.#paused = undefined
  }

  /** Closes the connection, also of a package that heeds no signal. */
  stop(): void {
    this.#ending.abort(STOPPED)
    this.#reader?.cancel(STOPPED).catch(() => {})
    this.resume()
  }

  async #read(): Promise<void> {
    const { ask, events, taken } = this.#parts
    const { stream } = await ask(this.#ending.signal)
    const reader = stream.getReader()
    this.#reader = reader
    if (this.#ending.signal.aborted) return this.stop()
    for (let one = await reader.read(); !one.done; one = await reader.read()) {
      taken.take(one.value)
      if (this.#paused) await this.#paused.promise
      if (events.over) return
    }
    taken.end()
  }
}
