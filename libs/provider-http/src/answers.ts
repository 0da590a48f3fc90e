import { createStepBatcher, type SvcError } from '@svc/core'
import type { ModelEvent } from '@svc/core/contracts'
import { createEventDecoder } from '@svc/provider-http/sse'
import { Body, type Connection, type Controller, type Handler, headerOf, type RequestParts } from './connection.ts'
import type { EventSource, EventStream } from './event-stream.ts'
import { hasError, jsonLate, socketFailure } from './failure.ts'

type Headers = Parameters<NonNullable<Handler['onResponseStart']>>[2]

/** Turns the frames of one answer into events; made anew for each call. What it throws becomes the call's failure. */
export interface FrameReader {
  frame(data: string, event: string, emit: (event: ModelEvent) => void): void
  /** The answer has ended: emits `usage` and `finish`, or throws that it was cut. */
  end(emit: (event: ModelEvent) => void): void
  /** True once the answer is complete, so the caller does not wait for the end of the body. */
  readonly done?: boolean
  /** The answer came as one JSON, because that was asked for or all the same: emits its pieces; `end` follows. */
  whole?(body: unknown, emit: (event: ModelEvent) => void): void
}

/** What one answer is read with. */
export interface AnswerParts {
  send(handler: Handler): void
  readonly events: EventStream
  readonly reader: FrameReader
  readonly frameBytes: number
  readonly errorBytes: number
  readonly wholeBytes: number
  /** The failure for an answer that is none: by its status and body. */
  refused(status: number, body: unknown, type: string, retryAfterMs: number | undefined): SvcError
  /** The failure for a good answer that is longer than the limit. */
  long(): SvcError
  /** The failure for what reading a frame threw. */
  unreadable(error: unknown): SvcError
  broken(error: unknown): SvcError
}

/** How long the rest of an answer may take whose end is known: of an error's body, of a stream after its last frame. */
const REST_MS = 1000
const STOPPED = new Error('nobody reads any more')
const STREAM = /event-stream/i
const NO_JSON = /html|xml|^compressed$/i
const NO_STREAM = /json|html|xml|^compressed$/i
const BRACE = 123

/** What follows on an answer that came whole is done for all that came just now. */
const together = createStepBatcher()

/** Reads one HTTP answer as it comes: server-sent events, or one JSON, into the stream, anything else into a failure. */
export class StreamedAnswer implements Handler, EventSource {
  readonly #parts: AnswerParts
  #controller: Controller | undefined
  #decode: ((bytes: Uint8Array) => void) | undefined
  #other: { readonly body: Body; readonly conclude: () => void } | undefined
  #unlabelled: (() => void) | undefined
  #rest: NodeJS.Timeout | undefined
  #stopped = false
  #refused = false

  constructor(parts: AnswerParts) {
    this.#parts = parts
  }

  start(): void {
    this.#parts.send(this)
  }
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#rest)
    this.#controller?.abort(STOPPED)
  }
  pause(): void {
    this.#controller?.pause()
  }
  resume(): void {
    this.#controller?.resume()
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#stopped) controller.abort(STOPPED)
  }

  onResponseStart(_: Controller, status: number, headers: Headers): void {
    if (status < 200) return
    // the request does not accept compression, so the body is not read
    const type = isCompressed(headers) ? 'compressed' : headerOf(headers, 'content-type')
    if (status >= 300 || NO_STREAM.test(type)) return this.#gather(status, type, headers)
    this.#decode = createEventDecoder(this.#frame, this.#parts.frameBytes)
    if (!STREAM.test(type)) this.#unlabelled = () => this.#gather(status, type, headers)
  }

  onResponseData(controller: Controller, chunk: Uint8Array): void {
    if (this.#parts.events.over) return
    if (this.#unlabelled) this.#look(chunk, this.#unlabelled)
    if (this.#decode) return this.#guarded(() => this.#decode?.(chunk))
    this.#other?.body.push(chunk)
    if (this.#other?.body.over) this.#concludeEarly(controller)
  }

  onResponseEnd(): void {
    clearTimeout(this.#rest)
    const { conclude } = this.#other ?? {}
    if (conclude) together(() => this.#guarded(conclude))
    else this.#end()
  }

  onResponseError(_: Controller, error: Error): void {
    clearTimeout(this.#rest)
    if (this.#refused) this.#other?.conclude()
    else this.#parts.events.end({ reason: this.#parts.broken(error) })
  }

  /** No event stream begins with a brace: this is JSON without a content type. */
  #look(chunk: Uint8Array, gather: () => void): void {
    this.#unlabelled = undefined
    if (chunk[0] !== BRACE) return
    this.#decode = undefined
    gather()
  }

  // Own functions, made once a call: they run for each token.
  readonly #frame = (data: string, event: string): void => {
    const { events, reader } = this.#parts
    if (events.over) return
    reader.frame(data, event, events.push)
    if (reader.done === true) this.#complete()
  }

  /** The last frame has come: the reader waits no longer, the connection is kept if its body ends soon. */
  #complete(): void {
    this.#end()
    this.#rest = setTimeout(() => this.stop(), REST_MS).unref()
  }

  #end(): void {
    const { events, reader } = this.#parts
    if (events.over) return
    this.#guarded(() => {
      reader.end(events.push)
      events.end()
    })
  }

  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#parts.events.end({ reason: this.#parts.unreadable(error) })
      this.stop()
    }
  }

  #gather(status: number, type: string, headers: Headers): void {
    const { events, reader, errorBytes, wholeBytes } = this.#parts
    const body = new Body(status < 300 ? wholeBytes : errorBytes)
    this.#refused = status >= 300
    const conclude = () => {
      if (events.over) return
      const value = body.value()
      const isWhole = !this.#refused && reader.whole !== undefined && !NO_JSON.test(type) && !hasError(value)
      if (!this.#refused && body.over) events.end({ reason: this.#parts.long() })
      else if (isWhole) this.#whole(value)
      else events.end({ reason: this.#parts.refused(status, value, type, retryAfterOf(headers)) })
    }
    this.#other = { body, conclude }
    if (this.#refused && this.#controller) this.#endSoon(this.#controller)
  }

  /** What its reader can make nothing of is as bad as a frame that cannot be read. */
  #whole(value: unknown): void {
    this.#guarded(() => {
      this.#parts.reader.whole?.(value, this.#parts.events.push)
      this.#end()
    })
  }

  #endSoon(controller: Controller): void {
    this.#rest = setTimeout(() => this.#concludeEarly(controller), REST_MS).unref()
  }

  #concludeEarly(controller: Controller): void {
    this.#other?.conclude()
    clearTimeout(this.#rest)
    controller.abort(STOPPED)
  }
}

const isCompressed = (headers: Headers) => !/^(identity)?$/i.test(headerOf(headers, 'content-encoding'))

/** One answer, whole. `body` is parsed where it was JSON, else text. */
interface WholeAnswer {
  readonly status: number
  readonly type: string
  readonly body: unknown
  /** It was longer than the limit. */
  readonly over: boolean
  readonly retryAfterMs: number | undefined
}

/** Sends a request and gathers its answer. Throws MODEL_FAILED, and what the signal aborted with. */
export function askWhole(
  connection: Connection,
  parts: RequestParts,
  { provider, bodyBytes, jsonMs }: { readonly provider: string; readonly bodyBytes: number; readonly jsonMs: number },
  signal: AbortSignal
): Promise<WholeAnswer> {
  if (signal.aborted) return Promise.reject(signal.reason as Error)
  const { promise, resolve, reject } = Promise.withResolvers<WholeAnswer>()
  const fail = (error: unknown) => reject(socketFailure(provider, error))
  const gathered = new GatheredAnswer(bodyBytes, resolve, fail)
  const stop = (reason: Error) => {
    reject(reason)
    gathered.stop(reason)
  }
  const aborted = () => stop(signal.reason as Error)
  const late = setTimeout(() => stop(jsonLate(provider, jsonMs)), jsonMs)
  signal.addEventListener('abort', aborted, { once: true })
  connection.send(parts, gathered, fail)
  return promise.finally(() => {
    clearTimeout(late)
    signal.removeEventListener('abort', aborted)
  })
}

/** Gathers one HTTP answer up to a limit. */
class GatheredAnswer implements Handler {
  readonly #body: Body
  readonly #done: (answer: WholeAnswer) => void
  readonly #failed: (error: unknown) => void
  #head: Omit<WholeAnswer, 'body' | 'over'> | undefined
  #controller: Controller | undefined
  #stopped: Error | undefined

  constructor(limit: number, done: (answer: WholeAnswer) => void, failed: (error: unknown) => void) {
    this.#body = new Body(limit)
    this.#done = done
    this.#failed = failed
  }

  stop(reason: Error): void {
    this.#stopped = reason
    this.#controller?.abort(reason)
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#stopped) controller.abort(this.#stopped)
  }

  onResponseStart(_: Controller, status: number, headers: Headers): void {
    if (status < 200) return
    this.#head = { status, type: headerOf(headers, 'content-type'), retryAfterMs: retryAfterOf(headers) }
  }

  onResponseData(controller: Controller, chunk: Uint8Array): void {
    this.#body.push(chunk)
    if (!this.#body.over) return
    this.onResponseEnd()
    controller.abort(new Error('the answer is too long'))
  }

  onResponseEnd(): void {
    if (this.#head) this.#done({ ...this.#head, body: this.#body.over ? '' : this.#body.value(), over: this.#body.over })
  }

  onResponseError(_: Controller, error: Error): void {
    this.#failed(error)
  }
}

type HeaderRecord = Readonly<Record<string, string | readonly string[] | undefined>>

const LONGEST_MS = 24 * 3600 * 1000

/** Milliseconds that an answer asks to wait: `retry-after-ms`, or `Retry-After` in seconds or as a date; a day at most. */
export function retryAfterOf(headers: HeaderRecord, now = Date.now()): number | undefined {
  const ms = numberOf(headers['retry-after-ms'])
  if (ms !== undefined) return bounded(ms)
  const seconds = numberOf(headers['retry-after'])
  if (seconds !== undefined) return bounded(seconds * 1000)
  const date = Date.parse(textOf(headers['retry-after']))
  return Number.isNaN(date) ? undefined : bounded(date - now)
}

const textOf = (value: HeaderRecord[string]): string => (typeof value === 'string' ? value : (value?.[0] ?? ''))
const bounded = (ms: number) => Math.min(Math.max(Math.ceil(ms), 0), LONGEST_MS)

function numberOf(value: HeaderRecord[string]): number | undefined {
  const text = textOf(value).trim()
  return /^\d{1,12}(\.\d+)?$/.test(text) ? Number(text) : undefined
}
