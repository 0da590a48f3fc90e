import { type CallContext, codeOf, type Log } from '@svc/core'
import {
  AnswerEvents,
  beganTwice,
  callCut,
  type NativeEvent,
  nativeText,
  settlesIn,
  toPublicError,
  modelFailureOf,
} from '@svc/api-types'
import type {
  Http,
  ModelCallBegun,
  ModelCallEvent,
  NamedModels,
  RouteReply,
  RouteRequest,
  RouteStreamItem,
} from '@svc/core/contracts'
import { refusedMessage, wholeMessage } from './answer.ts'
import { prepare, type PreparedCall } from './call.ts'
import { errorEvent, errorReply, modelError, recordError, type WireError } from './errors.ts'
import { MessageFrames, refusalFrames } from './frames.ts'

/** The response to a call without a stream. */
async function reply(events: AsyncIterable<ModelCallEvent>, prepared: PreparedCall, ctx: CallContext): Promise<RouteReply> {
  let start: ModelCallBegun | undefined
  let native: NativeEvent | undefined
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
const contentOf = ({ data }: NativeEvent): RouteReply => (typeof data === 'string' ? { text: data } : { body: data })

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
  const source = new AnswerEvents(events)
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

const nativeFrame = (event: NativeEvent): string =>
  `${event.event === undefined ? '' : `event: ${event.event}\n`}data: ${nativeText(event)}\n\n`

/** Events after which a server sends no other. */
const LAST: ReadonlySet<string | undefined> = new Set(['message_stop', 'error'])

/** Passes on the events of a server that speaks this API. */
class NativeFrames implements Writer {
  readonly #held: readonly NativeEvent[]
  #last: string | undefined

  constructor(held: readonly NativeEvent[]) {
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
