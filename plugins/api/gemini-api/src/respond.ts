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
import { blockedResponse, ResponseChunks, WholeResponse } from './answer.ts'
import { type PreparedCall, prepare } from './call.ts'
import { errorBody, errorReply, modelError, recordError, type WireError } from './errors.ts'

/** What the routes call. */
export interface ApiServices {
  readonly models: NamedModels
  readonly http: Http
  readonly log: Log
}

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }

const answerFor = (name: string, { translated: { hasThoughts } }: PreparedCall) => ({ model: name, hasThoughts })

const isRefusal = (error: unknown) => modelFailureOf(error)?.kind === 'content_refused'

/** The response to `generateContent`. Throws errors that are not of a model: the server formats and logs them. */
export async function reply({ models }: ApiServices, name: string, request: RouteRequest, ctx: CallContext): Promise<RouteReply> {
  const prepared = await prepare(models, name, request, 'whole', ctx)
  const whole = new WholeResponse(answerFor(name, prepared))
  let start: ModelCallBegun | undefined
  let native: NativeEvent | undefined
  const headers = () => prepared.droppedHeader(start?.dropped ?? [], native !== undefined)
  /** An answer of a server that speaks this API goes to the client as it is. */
  const passedOn = (event: NativeEvent): RouteReply => ({ headers: { ...headers(), ...JSON_TYPE }, text: nativeText(event) })
  try {
    for await (const event of models.stream(prepared.call, ctx)) {
      if (event.type === 'start') {
        ;[start, native] = [event, undefined]
        whole.begin(event.provider)
      } else if (event.type === 'native') native = event
      else if (event.type !== 'end') whole.take(event)
      else if (event.status === 'completed') return native ? passedOn(native) : { headers: headers(), body: whole.wire(event) }
    }
  } catch (error) {
    if (isRefusal(error))
      return native ? passedOn(native) : { headers: headers(), body: blockedResponse(answerFor(name, prepared)) }
    const known = modelError(error)
    if (!known) throw error
    return errorReply(known)
  }
  throw callCut()
}

/**
 * Milliseconds for which the head of a stream waits for the first part of the answer: a call that fails in this time gets a status.
 * Then the server sends the head, and heartbeats.
 */
const HOLD_MS = 15_000

/** How the responses of a stream are written. */
export interface StreamForm {
  readonly headers: Readonly<Record<string, string>>
  /** A response, as JSON. */
  chunk(json: string): string
  /** The end of a stream, after its last response. */
  end(): string
}

/** Server-sent events, for `alt=sse`. */
export const createEvents = (): StreamForm => ({ headers: {}, chunk: json => `data: ${json}\n\n`, end: () => '' })

/** A JSON array that is written piece by piece, as the API does without `alt=sse`. */
export function createArray(): StreamForm {
  let isOpen = false
  return {
    headers: JSON_TYPE,
    chunk(json) {
      const before = isOpen ? ',\n' : '['
      isOpen = true
      return before + json
    },
    end: () => (isOpen ? ']\n' : '[]\n'),
  }
}

/** The response to `streamGenerateContent`. A call that fails before its first part has a whole reply. */
export async function* stream(
  services: ApiServices,
  name: string,
  request: RouteRequest,
  form: StreamForm,
  ctx: CallContext
): AsyncGenerator<RouteStreamItem, void> {
  const { models } = services
  const prepared = await prepare(models, name, request, 'stream', ctx)
  const source = new AnswerEvents(models.stream(prepared.call, ctx))
  const head = (isNative: boolean) => ({ headers: { ...form.headers, ...prepared.droppedHeader(source.dropped, isNative) } })
  let isSent = false
  let writer: Writer | undefined
  const open = () => (writer ??= writerOf(source, name, prepared))
  try {
    const opened = source.open()
    if (!(await settlesIn(HOLD_MS, opened))) {
      isSent = true
      yield head(prepared.isNative)
    }
    const first = await opened
    if (!isSent) yield head(source.isNative)
    isSent = true
    for (const json of open().begin()) yield form.chunk(json)
    for (let event: ModelCallEvent | undefined = first; event; event = await source.next()) {
      const json = open().take(event)
      if (json !== undefined) yield form.chunk(json)
    }
    yield form.end()
  } catch (error) {
    if (isGone(ctx)) throw error
    const refused = isRefusal(error)
    if (!refused && !isSent) {
      const known = modelError(error)
      if (!known) throw error
      yield errorReply(known)
      return
    }
    if (!isSent) yield head(source.isNative)
    const last = refused ? refusal(writer, open()) : [JSON.stringify(errorBody(await wireError(error, services, ctx)))]
    for (const json of last) yield form.chunk(json)
    yield form.end()
  } finally {
    source.close()
  }
}

/** Whether the client has left. When the server stops, the client still gets an error. */
const isGone = ({ signal }: CallContext) => signal.aborted && codeOf(signal.reason) !== 'UNAVAILABLE'

/** An error inside a stream. The server does not see it, so an internal error is logged here. */
async function wireError(error: unknown, { http, log }: ApiServices, ctx: CallContext): Promise<WireError> {
  const known = modelError(error)
  if (known) return known
  const { record, status } = await http.explain(toPublicError(error), ctx)
  if (record.error_code === 'INTERNAL_ERROR') log.error({ err: error, request_id: ctx.requestId }, 'a stream failed')
  return recordError(record, status)
}

/** Writes the responses of an answer, as JSON. */
interface Writer {
  begin(): readonly string[]
  take(event: ModelCallEvent): string | undefined
  /** The end of an answer that the model refuses to continue. */
  refuse(): readonly string[]
}

const refusal = (begun: Writer | undefined, writer: Writer): readonly string[] => [
  ...(begun ? [] : writer.begin()),
  ...writer.refuse(),
]

const writerOf = (source: AnswerEvents, name: string, prepared: PreparedCall): Writer =>
  source.isNative ? passingOn(source.natives) : translating(source.provider, name, prepared)

function translating(provider: string, name: string, prepared: PreparedCall): Writer {
  const chunks = new ResponseChunks(provider, answerFor(name, prepared))
  return {
    begin: () => [],
    take(event) {
      if (event.type === 'start') throw beganTwice()
      if (event.type !== 'end') return chunks.take(event)
      return event.status === 'completed' ? chunks.end(event) : undefined
    },
    refuse: () => [chunks.refuse()],
  }
}

/** Passes on the responses of a server that speaks this API. It has sent its refusal itself. */
const passingOn = (held: readonly NativeEvent[]): Writer => ({
  begin: () => held.map(nativeText),
  take(event) {
    if (event.type === 'start') throw beganTwice()
    return event.type === 'native' ? nativeText(event) : undefined
  },
  refuse: () => [],
})
