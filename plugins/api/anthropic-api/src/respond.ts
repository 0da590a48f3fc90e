import { type CallContext, codeOf, type Log } from '@svc/core'
import { toPublicError } from '@svc/api-types'
import type {
  Http,
  ModelCallBegun,
  ModelCallEvent,
  ModelEvent,
  NamedModels,
  RequestField,
  RouteReply,
  RouteRequest,
  RouteStreamItem,
} from '@svc/core/contracts'
import { refusedMessage, wholeMessage } from './answer.ts'
import { prepare, type PreparedCall } from './call.ts'
import { beganTwice, callCut, errorEvent, errorReply, modelError, modelFailureOf, recordError, type WireError } from './errors.ts'
import { MessageFrames, refusalFrames } from './frames.ts'

type Native = Extract<ModelEvent, { type: 'native' }>

/** The response to a call without a stream. */
async function reply(events: AsyncIterable<ModelCallEvent>, prepared: PreparedCall, ctx: CallContext): Promise<RouteReply> {
  let start: ModelCallBegun | undefined
  let native: Native | undefined
  const head = () => headOf(prepared, start?.dropped, native !== undefined, ctx)
  try {
    for await (const event of events) {
      if (event.type === 'start') [start, native] = [event, undefined]
      else if (event.type === 'native') native = event
      else if (event.type === 'end' && event.status === 'completed') {
        if (!native) return { headers: head(), body: wholeMessage(event, answerFor(prepared)) }
        return { headers: { ...head(), ...JSON_TYPE }, ...contentOf(native) }
      }
    }
  } catch (error) {
    if (isRefusal(error)) return { headers: head(), body: refusedMessage(answerFor(prepared)) }
    return failed(error, ctx)
  }
  throw callCut()
}

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }

/** A whole answer of a server that speaks this API: JSON, parsed or as text. */
const contentOf = ({ data }: Native): RouteReply => (typeof data === 'string' ? { text: data } : { body: data })

/** The response to a call that failed before its answer. Throws errors that are not of a model: the server formats and logs them. */
function failed(error: unknown, { requestId }: CallContext): RouteReply {
  const known = modelError(error)
  if (!known) throw error
  return errorReply(known, requestId)
}

const answerFor = ({ translated: { name, thinking } }: PreparedCall) => ({ model: name, thinking })

const headOf = (prepared: PreparedCall, dropped: ModelCallBegun['dropped'], isNative: boolean, { requestId }: CallContext) => ({
  'request-id': requestId,
  ...prepared.droppedHeader(dropped ?? [], isNative),
})

/**
 * Milliseconds for which the head of a stream waits for the first part of the answer: a call that fails in this time gets a status.
 * Then the server sends the head, and pings.
 */
const HOLD_MS = 15_000

/** What the routes call. */
export interface ApiServices {
  readonly models: NamedModels
  readonly http: Http
  readonly log: Log
}

/**
 * The response to `POST /v1/messages`: one whole reply, or the events of a stream. A call that fails before them has a whole reply,
 * too.
 */
export async function* respond(
  services: ApiServices,
  request: RouteRequest,
  ctx: CallContext
): AsyncGenerator<RouteStreamItem, void> {
  const { models } = services
  const prepared = await prepare(models, request, 'answer', ctx)
  const events = models.stream(prepared.call, ctx)
  if (!prepared.translated.isStream) {
    yield await reply(events, prepared, ctx)
    return
  }
  const source = new AnswerEvents(events[Symbol.asyncIterator]())
  const head = (isNative: boolean) => ({ headers: headOf(prepared, source.dropped, isNative, ctx) })
  let isSent = false
  let writer: Writer | undefined
  try {
    const opened = source.open()
    if (!(await settlesIn(HOLD_MS, opened))) {
      isSent = true
      yield head(prepared.isNative)
    }
    const first = await opened
    if (!isSent) yield head(source.isNative)
    isSent = true
    writer = writerOf(source, prepared)
    yield writer.begin()
    for (let event: ModelCallEvent | undefined = first; event; event = await source.next()) {
      const text = writer.take(event)
      if (text !== '') yield text
    }
  } catch (error) {
    if (isGone(ctx)) throw error
    if (isRefusal(error)) {
      if (!isSent) yield head(source.isNative)
      yield refusalOf(writer, source, prepared)
    } else if (isSent) yield (writer ?? NO_WRITER).fail(errorEvent(await wireError(error, services, ctx), ctx.requestId))
    else yield failed(error, ctx)
  } finally {
    source.close()
  }
}

/** Whether the client has left. When the server stops, the client still gets an error. */
const isGone = ({ signal }: CallContext) => signal.aborted && codeOf(signal.reason) !== 'UNAVAILABLE'

const isRefusal = (error: unknown) => modelFailureOf(error)?.kind === 'content_refused'

/** An error inside a stream. The server does not see it, so an internal error is logged here. */
async function wireError(error: unknown, { http, log }: ApiServices, ctx: CallContext): Promise<WireError> {
  const known = modelError(error)
  if (known) return known
  const { record, status } = await http.explain(toPublicError(error), ctx)
  if (record.error_code === 'INTERNAL_ERROR') log.error({ err: error, request_id: ctx.requestId }, 'a stream failed')
  return recordError(record, status)
}

/** Whether a promise settles in this time. */
async function settlesIn(ms: number, work: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => late.resolve(false), ms)
  const settled = async () => {
    await work.catch(() => {})
    return true
  }
  try {
    return await Promise.race([settled(), late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Maximum characters of original events that wait for the first part of the answer. */
const MOST_HELD = 4 * 1024 * 1024

/**
 * The events of a call. Until the first part of an answer, another model can begin it again: the events before are held back, and
 * those of an abandoned answer are left out.
 */
class AnswerEvents {
  readonly #events: AsyncIterator<ModelCallEvent>
  #start: ModelCallBegun | undefined
  #natives: Native[] = []
  #held = 0

  constructor(events: AsyncIterator<ModelCallEvent>) {
    this.#events = events
  }

  get provider(): string {
    return this.#start?.provider ?? ''
  }
  get dropped(): readonly RequestField[] {
    return this.#start?.dropped ?? []
  }
  /** The original events before the first part. */
  get natives(): readonly Native[] {
    return this.#natives
  }
  /** Whether the server of the model speaks this API. */
  get isNative(): boolean {
    return this.#held > 0
  }

  /** Reads up to the first part of the answer, or its end, and returns it. */
  async open(): Promise<ModelCallEvent> {
    for (;;) {
      const event = await this.next()
      if (!event) throw callCut()
      if (event.type === 'end' && event.status !== 'completed') continue // the stream throws next
      if (event.type === 'start') this.#restart(event)
      else if (event.type === 'native') {
        if (this.#hold(event)) return event
      } else if (isPart(event)) return event // other events before a part have no frames
    }
  }

  async next(): Promise<ModelCallEvent | undefined> {
    const { done, value } = await this.#events.next()
    return done ? undefined : value
  }

  close(): void {
    void this.#events.return?.().catch(() => {})
  }

  #restart(start: ModelCallBegun): void {
    this.#start = start
    this.#natives = []
    this.#held = 0
  }

  /** Holds an original event back. Returns true if there are too many to hold: then the event counts as a part. */
  #hold(event: Native): boolean {
    this.#held += nativeFrame(event).length
    if (this.#held > MOST_HELD) return true
    this.#natives.push(event)
    return false
  }
}

/** Whether an event is a part of an answer, or its end. After one, the call does not begin again. */
function isPart(event: ModelCallEvent): boolean {
  if (event.type === 'text') return event.text !== ''
  if (event.type === 'reasoning') return event.text !== '' || event.providerData !== undefined
  return event.type === 'tool_call' || event.type === 'tool_call_delta' || event.type === 'end'
}

/** Writes the frames of an answer. */
interface Writer {
  begin(): string
  /** An empty text if the event has no frames. */
  take(event: ModelCallEvent): string
  /** The end of an answer that the model refuses to continue. */
  refuse(): string
  /** The end of an answer that failed. */
  fail(event: string): string
}

const NO_WRITER: Pick<Writer, 'fail'> = { fail: event => event }

const writerOf = (source: AnswerEvents, prepared: PreparedCall): Writer =>
  source.isNative ? new NativeFrames(source.natives) : translating(source, prepared)

function translating({ provider }: AnswerEvents, prepared: PreparedCall): Writer {
  const frames = new MessageFrames(answerFor(prepared), provider)
  return {
    begin: () => frames.begin(),
    take(event) {
      if (event.type === 'start') throw beganTwice()
      if (event.type !== 'end') return frames.take(event)
      return event.status === 'completed' ? frames.end(event) : ''
    },
    refuse: () => frames.refuse(),
    fail: event => event,
  }
}

/** An event as its server sent it: its data is JSON, parsed or as text. */
function nativeFrame({ event, data }: Native): string {
  const json = typeof data === 'string' ? data : JSON.stringify(data)
  return event === undefined ? `data: ${json}\n\n` : `event: ${event}\ndata: ${json}\n\n`
}

/** Events after which a server sends no other. */
const LAST: ReadonlySet<string | undefined> = new Set(['message_stop', 'error'])

/** Passes on the events of a server that speaks this API. */
class NativeFrames implements Writer {
  readonly #held: readonly Native[]
  #last: string | undefined

  constructor(held: readonly Native[]) {
    this.#held = held
    this.#last = held.at(-1)?.event
  }

  begin(): string {
    return this.#held.map(nativeFrame).join('')
  }

  take(event: ModelCallEvent): string {
    if (event.type === 'start') throw beganTwice()
    if (event.type !== 'native') return ''
    this.#last = event.event
    return nativeFrame(event)
  }

  /** Most servers have sent the whole refusal. */
  refuse(): string {
    return LAST.has(this.#last) ? '' : refusalFrames()
  }

  fail(event: string): string {
    return LAST.has(this.#last) ? '' : event
  }
}

/** The end of a stream whose model refuses to answer. */
function refusalOf(writer: Writer | undefined, source: AnswerEvents, prepared: PreparedCall): string {
  if (writer) return writer.refuse()
  const own = writerOf(source, prepared)
  return own.begin() + own.refuse()
}
