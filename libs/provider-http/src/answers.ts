import { createStepBatcher, type SvcError } from '@svc/core'
import type { ModelEvent } from '@svc/core/contracts'
import { createEventDecoder, createLineDecoder } from '@svc/provider-http/sse'
import { RequestBody, type UpstreamConnection, type Controller, type Handler, headerOf, type WireRequest } from './connection.ts'
import type { EventSource, EventStream } from './event-stream.ts'
import { hasError, jsonLate, modelFailure, socketFailure } from './failure.ts'

type Headers = Parameters<NonNullable<Handler['onResponseStart']>>[2]

/**
 * Turns the frames of one answer into events: server-sent events, or lines of JSON. Each call has its own reader. An error that it throws fails the call: MODEL_FAILED as it
 * is, a SyntaxError of `JSON.parse` as malformed data, and a TypeError and the like as PROVIDER_BROKEN.
 */
export interface FrameReader {
  frame(data: string, event: string, emit: (event: ModelEvent) => void): void
  /** Runs at the end of the answer: emits `usage` and `finish`, or throws if the answer is incomplete. */
  end(emit: (event: ModelEvent) => void): void
  /** True once the answer is complete, so the caller does not wait for the end of the body. */
  readonly done?: boolean
  /** Emits the pieces of an answer that came as one JSON value, requested or not. `end` follows. */
  whole?(body: unknown, emit: (event: ModelEvent) => void): void
}

/** The dependencies of a `StreamedAnswer`. */
export interface UpstreamAnswerOptions {
  send(handler: Handler): void
  readonly events: EventStream
  readonly reader: FrameReader
  readonly frameBytes: number
  readonly errorBytes: number
  readonly wholeBytes: number
  /** `lines`: an answer is newline-delimited JSON unless its content type names another format. Else its content type decides. */
  readonly frames: 'events' | 'lines'
  /** The failure for an unusable answer, by its status and body. */
  refused(status: number, body: unknown, type: string, retryAfterMs: number | undefined): SvcError
  /** The failure for a successful answer that is longer than the limit. */
  long(): SvcError
  /** Converts an error of the frame reader to a failure. `frame`: the frame that it read. */
  unreadable(error: unknown, frame: string | undefined): SvcError
  /** Converts a connection error to a failure. */
  broken(error: unknown): SvcError
}

/** Time limit for the rest of an error body, and for the end of a stream after its last frame. */
const REST_MS = 1000
const STOPPED = new Error('the reader has left')
const STREAM = /event-stream/i
/** Newline-delimited JSON has no registered type. These are customary. */
const LINES = /^(application|text)\/(x-)?(ndjson|jsonl|jsonlines|json-lines|stream\+json)\b/i
const NOT_JSON = /html|xml|^compressed$/i
const NOT_STREAM = /json|html|xml|^compressed$/i
const BRACE = 123

/** Concludes the whole answers of one event-loop turn together. */
const together = createStepBatcher()

/** Reads one HTTP answer. Server-sent events, newline-delimited JSON and JSON become events; any other answer becomes a failure. */
export class StreamedAnswer implements Handler, EventSource {
  readonly #parts: UpstreamAnswerOptions
  #controller: Controller | undefined
  #decode: ((bytes: Uint8Array) => void) | undefined
  #other: { readonly body: RequestBody; readonly conclude: () => void } | undefined
  /** Takes a last line without its end. */
  #flush: (() => void) | undefined
  #unlabelled: (() => void) | undefined
  #read: string | undefined
  #rest: NodeJS.Timeout | undefined
  #stopped = false
  #refused = false

  constructor(parts: UpstreamAnswerOptions) {
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
    // The request does not accept compression, so svc does not decode such a body.
    const type = isCompressed(headers) ? 'compressed' : headerOf(headers, 'content-type')
    if (status < 300 && this.#hasLines(type)) return this.#readLines()
    if (status >= 300 || NOT_STREAM.test(type)) return this.#gather(status, type, headers)
    this.#decode = createEventDecoder(this.#frame, this.#parts.frameBytes)
    if (!STREAM.test(type)) this.#unlabelled = () => this.#gather(status, type, headers)
  }

  #hasLines(type: string): boolean {
    return LINES.test(type) || (this.#parts.frames === 'lines' && !STREAM.test(type) && !NOT_JSON.test(type))
  }

  #readLines(): void {
    const lines = createLineDecoder(line => this.#frame(line, 'message'), this.#parts.frameBytes)
    this.#decode = bytes => lines.push(bytes)
    this.#flush = () => lines.end()
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
    else {
      this.#guarded(() => this.#flush?.())
      this.#end()
    }
  }

  onResponseError(_: Controller, error: Error): void {
    clearTimeout(this.#rest)
    if (this.#refused) this.#other?.conclude()
    else this.#parts.events.end({ reason: this.#parts.broken(error) })
  }

  /** Decides by the first byte: a brace begins JSON, never an event stream. */
  #look(chunk: Uint8Array, gather: () => void): void {
    this.#unlabelled = undefined
    if (chunk[0] !== BRACE) return
    this.#decode = undefined
    gather()
  }

  // A field, not a method: it is created once for each call and runs for each token.
  readonly #frame = (data: string, event: string): void => {
    const { events, reader } = this.#parts
    if (events.over) return
    this.#read = data
    reader.frame(data, event, events.push)
    if (reader.done === true) this.#complete()
  }

  /** Ends the events after the last frame. The connection stays open if the body ends soon. */
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
      this.#parts.events.end({ reason: this.#parts.unreadable(error, this.#read) })
      this.stop()
    }
  }

  #gather(status: number, type: string, headers: Headers): void {
    const { events, reader, errorBytes, wholeBytes } = this.#parts
    const body = new RequestBody(status < 300 ? wholeBytes : errorBytes)
    this.#refused = status >= 300
    const conclude = () => {
      if (events.over) return
      const value = body.value()
      const isWhole = !this.#refused && reader.whole !== undefined && !NOT_JSON.test(type) && !hasError(value)
      if (!this.#refused && body.over) events.end({ reason: this.#parts.long() })
      else if (isWhole) this.#whole(value)
      else events.end({ reason: this.#parts.refused(status, value, type, retryAfterOf(headers)) })
    }
    this.#other = { body, conclude }
    if (this.#refused && this.#controller) this.#endSoon(this.#controller)
  }

  /** An error of the reader has the same effect as an unreadable frame. */
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

/** A complete answer. `body` is the parsed JSON, or the text if it is not valid JSON. */
interface WholeAnswer {
  readonly status: number
  readonly type: string
  readonly body: unknown
  /** True if the body was longer than the limit. */
  readonly over: boolean
  readonly retryAfterMs: number | undefined
}

/** Sends a request and reads the whole answer. Rejects with MODEL_FAILED, or with the reason of the signal. */
export function askWhole(
  connection: UpstreamConnection,
  parts: WireRequest,
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
  const late = jsonMs > 0 ? setTimeout(() => stop(jsonLate(provider, jsonMs)), jsonMs) : undefined
  signal.addEventListener('abort', aborted, { once: true })
  connection.send(parts, gathered, fail)
  return promise.finally(() => {
    clearTimeout(late)
    signal.removeEventListener('abort', aborted)
  })
}

/** Collects one HTTP answer up to a limit. */
class GatheredAnswer implements Handler {
  readonly #body: RequestBody
  readonly #done: (answer: WholeAnswer) => void
  readonly #failed: (error: unknown) => void
  #head: Omit<WholeAnswer, 'body' | 'over'> | undefined
  #controller: Controller | undefined
  #stopped: Error | undefined

  constructor(limit: number, done: (answer: WholeAnswer) => void, failed: (error: unknown) => void) {
    this.#body = new RequestBody(limit)
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

/** The wait that an answer asks for, in milliseconds: `retry-after-ms`, or `Retry-After` in seconds or as a date. At most a day. */
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

/** Emits events as those of answer number `choice`, from 1, of a request with `n`. */
export const ofChoice =
  (choice: number, emit: (event: ModelEvent) => void): ((event: ModelEvent) => void) =>
  event =>
    emit({ ...event, choice } as ModelEvent)

/** The upstream returned fewer answers than `n`. */
export const tooFewAnswers = (provider: string, n: number) =>
  modelFailure(
    provider,
    { kind: 'bad_request' },
    `the upstream gave fewer answers than the ${n} that were requested`,
    'Request one answer, and repeat the call for more'
  )
