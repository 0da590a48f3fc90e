import { createParser } from 'eventsource-parser'
import { ApiError } from './errors.ts'
import { backOff, connectionFailed, isPassing, type RetryOptions, sleep } from './sender.ts'

/** Events of a stream. Leaving the loop closes the connection. It can be read once. */
export interface EventStream<T> extends AsyncIterable<T> {
  /** The id of the last event. A later stream continues behind it with `after`. */
  readonly lastEventId: string | undefined
  /** The position before the last event: a stream that begins after it begins with that event. */
  readonly previousEventId: string | undefined
}

export interface StreamLimits {
  /** Time without a byte after which the connection counts as dead. Servers send a heartbeat every 15 s. */
  readonly idleTimeoutMs: number
  /** Maximum characters of an event. */
  readonly maxEventLength: number
  /** Failed connections in a row, and the times between them. */
  readonly reconnect: RetryOptions
}

/** Where a stream comes from. */
export interface EventSource<T> {
  /** Opens a connection that begins after the event with this id. Throws ApiError. */
  open(after: string | undefined, isFirst: boolean, signal: AbortSignal): Promise<Response>
  readonly after: string | undefined
  /** Whether a connection that breaks now is followed by another. */
  readonly isResumed: () => boolean
  /** Whether an event is the last. Without it, a stream that is not resumed can end after any event. */
  readonly isLast?: (event: T) => boolean
  /** Asks the server whether there will be no more events, after a connection without any. Without it, a resumed stream never ends. */
  readonly isOver?: (signal: AbortSignal) => Promise<boolean>
}

/** A connection that lasts so long is no failed attempt, even if it brings no event. */
const STEADY_MS = 5_000

export function createEventStream<T>(source: EventSource<T>, limits: StreamLimits, signal?: AbortSignal): EventStream<T> {
  const reader = new StreamReader(source, limits, signal)
  let isRead = false
  return {
    get lastEventId() {
      return reader.lastEventId
    },
    get previousEventId() {
      return reader.previousEventId
    },
    [Symbol.asyncIterator]() {
      if (isRead) throw new ApiError('the stream has been read already', { code: 'REQUEST_INVALID', hint: 'Open another stream' })
      isRead = true
      return reader.read()
    },
  }
}

interface Connection {
  readonly began: number
  events: number
  /** The time that the server asks to wait before the next connection. */
  retryMs: number | undefined
}

class StreamReader<T> {
  lastEventId: string | undefined
  previousEventId: string | undefined
  readonly #source: EventSource<T>
  readonly #limits: StreamLimits
  readonly #signal: AbortSignal | undefined
  #failures = 0
  #isOver = false
  #isConnected = false

  constructor(source: EventSource<T>, limits: StreamLimits, signal: AbortSignal | undefined) {
    this.lastEventId = source.after
    this.#source = source
    this.#limits = limits
    this.#signal = signal
  }

  async *read(): AsyncGenerator<T, void> {
    const closing = new AbortController()
    const { signal } = closing
    const onAbort = () => closing.abort(this.#signal?.reason)
    this.#signal?.addEventListener('abort', onAbort, { once: true })
    if (this.#signal?.aborted) onAbort()
    try {
      for (;;) {
        const connection: Connection = { began: Date.now(), events: 0, retryMs: undefined }
        let failure: ApiError | undefined
        try {
          if (yield* this.#connect(connection, signal)) return
          if (await this.#hasEnded(connection, signal)) return
        } catch (error) {
          failure = this.#passing(error)
        }
        await this.#pause(connection, failure, signal)
      }
    } finally {
      this.#signal?.removeEventListener('abort', onAbort)
      closing.abort()
    }
  }

  /** Reads one connection. Returns true after the last event. */
  async *#connect(connection: Connection, signal: AbortSignal): AsyncGenerator<T, boolean> {
    const { isLast } = this.#source
    const response = await this.#source.open(this.lastEventId, !this.#isConnected, signal)
    this.#isConnected = true
    for await (const { id, event, data } of framesOf(response, this.#limits, signal, ms => (connection.retryMs = ms))) {
      this.previousEventId = this.lastEventId
      if (id !== undefined) this.lastEventId = id
      if (data === '') continue // only a position
      connection.events += 1
      const value = valueOf<T>(event, data)
      yield value
      if (isLast?.(value)) return true
    }
    signal.throwIfAborted()
    return false
  }

  /** Returns the error if another connection can go on. Throws it otherwise. */
  #passing(error: unknown): ApiError {
    this.#signal?.throwIfAborted()
    const isCut = error instanceof ApiError && error.code === 'STREAM_CUT'
    if (!(error instanceof ApiError) || !(isCut || isPassing(error))) throw error
    if (!this.#source.isResumed() || !this.#isConnected) throw error
    return error
  }

  /** Whether a connection that ended without an error was the last. */
  async #hasEnded({ events, retryMs }: Connection, signal: AbortSignal): Promise<boolean> {
    const { isResumed, isLast, isOver } = this.#source
    if (!isResumed() && isLast) throw streamCut('the stream ended without its last event')
    if (!isResumed()) return true
    if (!isOver || retryMs !== undefined || events > 0) return false
    // events can have come between the end of the connection and this question: another connection shows them
    if (this.#isOver) return true
    this.#isOver = await isOver(signal)
    return false
  }

  async #pause({ began, events, retryMs }: Connection, failure: ApiError | undefined, signal: AbortSignal): Promise<void> {
    const { reconnect } = this.#limits
    const isSteady = events > 0 || Date.now() - began >= STEADY_MS
    this.#failures = isSteady ? 0 : this.#failures + 1
    const { retries = 8, maxDelayMs = 30_000 } = reconnect
    const asked = failure?.retryAfterMs ?? retryMs
    if (this.#failures > retries || (asked ?? 0) > maxDelayMs)
      throw failure ?? streamCut('the server ends each connection at once')
    await sleep(asked ?? backOff(this.#failures, reconnect), signal)
  }
}

const streamCut = (message: string, cause?: unknown): ApiError =>
  new ApiError(message, {
    code: 'STREAM_CUT',
    hint: 'Read the present state from the server before you repeat the request',
    cause,
  })

function valueOf<T>(event: string | undefined, data: string): T {
  try {
    return JSON.parse(data) as T
  } catch (error) {
    throw new ApiError(`the event "${(event ?? 'message').slice(0, 100)}" is not valid JSON`, {
      code: 'STREAM_INVALID',
      cause: error,
    })
  }
}

interface Frame {
  readonly id: string | undefined
  readonly event: string | undefined
  readonly data: string
}

/** An id without data is not an event by the standard: a browser remembers it, and the parser skips it. Empty data make it an event. */
const POSITION = /\nid: [^\n]*\n(?=\n)/g
/** The beginning of a line with an id, or the whole line, at the end of a chunk. */
const OPEN_ID = /\n(?:i|id|id:|id: [^\n]{0,65536}\n?)$/
const LONGEST_ID = 65_600

/** Marks the positions in the chunks of a stream. It keeps back a line with an id until the next chunk shows what follows. */
function createPositionMarker(): (chunk: string) => string {
  let isLineStart = true
  let kept = ''
  return chunk => {
    // shows whether the chunk begins with a line
    const before = isLineStart ? '\n' : '-'
    const text = before + kept + chunk
    const at = OPEN_ID.exec(text.slice(-LONGEST_ID))
    const whole = at ? text.slice(0, text.length - at[0].length + 1) : text
    kept = text.slice(whole.length)
    if (whole.length > 1) isLineStart = whole.endsWith('\n')
    return whole.replace(POSITION, '$&data:\n').slice(1)
  }
}

/** Reads the events of a response. Throws ApiError. Ending the iteration closes the connection. */
async function* framesOf(
  response: Response,
  { idleTimeoutMs, maxEventLength }: StreamLimits,
  signal: AbortSignal,
  onRetry: (ms: number) => void
): AsyncGenerator<Frame, void> {
  const reader = bodyOf(response).getReader()
  const decoder = new TextDecoder()
  const mark = createPositionMarker()
  let frames: Frame[] = []
  let isTooLarge = false
  const parser = createParser({
    maxBufferSize: maxEventLength,
    onEvent: ({ id, event, data }) => frames.push({ id, event, data }),
    onRetry,
    onError: ({ type }) => (isTooLarge ||= type === 'max-buffer-size-exceeded'),
  })
  // In Node.js, a request that is garbage collected no longer passes the signal on to its response.
  const onAbort = () => void reader.cancel().catch(() => {})
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    for (;;) {
      signal.throwIfAborted()
      const chunk = await nextChunk(reader, idleTimeoutMs)
      if (chunk === undefined) return
      frames = []
      parser.feed(mark(decoder.decode(chunk, { stream: true })))
      yield* frames
      if (isTooLarge)
        throw new ApiError(`an event has more than ${maxEventLength} characters`, {
          code: 'EVENT_TOO_LARGE',
          hint: 'Set maxEventLength to a higher number',
        })
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    onAbort() // the connection may be broken already
  }
}

function bodyOf(response: Response): ReadableStream<Uint8Array> {
  const type = response.headers.get('content-type') ?? ''
  if (response.body && type.startsWith('text/event-stream')) return response.body
  void response.body?.cancel()
  throw new ApiError(`the response is not an event stream, but "${type.slice(0, 100)}"`, {
    code: 'RESPONSE_INVALID',
    status: response.status,
  })
}

async function nextChunk(reader: ReadableStreamDefaultReader<Uint8Array>, idleMs: number): Promise<Uint8Array | undefined> {
  let isIdle = false
  const timer = setTimeout(() => {
    isIdle = true
    reader.cancel().catch(() => {})
  }, idleMs)
  try {
    const { done, value } = await reader.read()
    if (isIdle) throw streamCut(`the server sent nothing for ${idleMs} ms`)
    return done ? undefined : value
  } catch (error) {
    throw error instanceof ApiError ? error : streamCut('the connection broke', connectionFailed(error))
  } finally {
    clearTimeout(timer)
  }
}
