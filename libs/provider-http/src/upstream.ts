import { type CallContext, codeOf, type SvcError, svcError, traceHeaders } from '@svc/core'
import type { ModelEvent, ModelRequest, NativeRequest } from '@svc/core/contracts'
import { askWhole, type FrameReader, StreamedAnswer } from './answers.ts'
import { connect, type WireRequest } from './connection.ts'
import { EventStream } from './event-stream.ts'
import {
  answerFailure,
  createHide,
  hasError,
  isMistake,
  malformed,
  noEvents,
  providerBroken,
  type ReadFailure,
  redirected,
  secretsOf,
  socketFailure,
  tooLarge,
} from './failure.ts'
import { isTree, sentBody } from './json.ts'

export interface UpstreamLimits {
  /** Time limit to connect, in milliseconds. */
  readonly connectMs?: number
  /** Time limit of a `json` call, in milliseconds. */
  readonly jsonMs?: number
  /** Maximum bytes of a body that is not a stream. */
  readonly bodyBytes?: number
  /** Maximum bytes of a frame. */
  readonly frameBytes?: number
  /** Maximum concurrent connections; further calls wait. */
  readonly connections?: number
}

/** Options of one call. */
export interface CallOptions {
  /** Further headers, in lower case. They replace headers of the upstream, so they must not come from a caller unchecked; see `nativeHeaders`. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Limits of one `json` call. */
export interface JsonLimits {
  /** Time limit in milliseconds; 0: only the signal limits the call. */
  readonly ms?: number
  /** Maximum bytes of the answer. */
  readonly bytes?: number
}

export interface UpstreamOptions {
  /** Name of the entry of `providers`, for error messages. */
  readonly provider: string
  /** http or https, without credentials, query and fragment. */
  readonly baseUrl: string
  /** Headers of each request, including the header with the key. */
  readonly headers: Readonly<Record<string, string>>
  /** Texts to redact from messages of the upstream. Values of secret headers (recognized by name) are redacted too. */
  readonly secrets: readonly string[]
  readonly limits?: UpstreamLimits
  /**
   * The frames of its streams: server-sent events, or newline-delimited JSON. The content type comes first: `events` also reads
   * `application/x-ndjson`, and `lines` also reads `text/event-stream`. Default `events`.
   */
  readonly frames?: 'events' | 'lines'
  /** Reads an error body of this protocol. The HTTP status decides the fields that it leaves out. */
  readonly failureOf?: ReadFailure
}

type AnsweredCall = (
  path: string,
  body: unknown,
  reader: FrameReader,
  ctx: CallContext,
  options?: CallOptions
) => AsyncIterableIterator<ModelEvent, undefined>

/** The HTTP upstream of a provider. Its methods fail with MODEL_FAILED, or with the reason of the signal. */
export interface Upstream {
  /** POSTs JSON and reads server-sent events or lines of JSON. The first `next` sends the request. An abort of `ctx.signal` or `return()` closes the socket. */
  stream: AnsweredCall
  /** POSTs JSON and reads one JSON answer with `reader.whole`. If the upstream streams anyway, this method reads the stream. */
  whole: AnsweredCall
  /** Sends a request and returns the JSON answer, within a time limit. */
  json(method: 'GET' | 'POST', path: string, body: unknown, ctx: CallContext, limits?: JsonLimits & CallOptions): Promise<unknown>
  /** Creates the failure for an error inside a stream. A `FrameReader` throws it. */
  failed(status: number, body: unknown): SvcError
  /** Ends all running calls. */
  close(): Promise<void>
}

const LIMITS: Required<UpstreamLimits> = {
  connectMs: 10_000,
  jsonMs: 15_000,
  bodyBytes: 8 * 1024 * 1024,
  frameBytes: 8 * 1024 * 1024,
  connections: 1024,
}
const ERROR_BYTES = 64 * 1024

/** Creates an upstream for one base URL. The first call opens the connection. */
export function createUpstream(options: UpstreamOptions): Upstream {
  const { provider, baseUrl, headers, secrets, failureOf, frames = 'events' } = options
  const limits = { ...LIMITS, ...options.limits }
  const base = checkBaseUrl(baseUrl, provider)
  const connection = connect(base.origin, limits)
  const hide = createHide(secretsOf(secrets, headers))
  const request = createRequest(base, headers)
  const failed = (status: number, body: unknown, retryAfterMs?: number) =>
    answerFailure({ provider, status, body, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }, failureOf, hide)
  const refused = refusalOf(provider, failed)
  const long = (bytes = limits.bodyBytes) => tooLarge(provider, `a body of more than ${bytes} bytes`)
  const answered = (asked: OutgoingRequest, reader: FrameReader, ctx: CallContext) => {
    const events = new EventStream(ctx.signal)
    const broken = (error: unknown) => socketFailure(provider, error)
    const isWhole = asked.accept === undefined && reader.whole !== undefined
    const answer = new StreamedAnswer({
      send: handler => connection.send(request(asked, ctx), handler, error => events.end({ reason: broken(error) })),
      events,
      reader,
      frameBytes: limits.frameBytes,
      errorBytes: ERROR_BYTES,
      wholeBytes: limits.bodyBytes,
      frames: isWhole ? 'events' : frames,
      refused,
      long,
      unreadable: (error, frame) => readingFailed(provider, error, frame, hide),
      broken,
    })
    return events.from(answer)
  }
  return {
    stream: (path, body, reader, ctx, options) =>
      answered({ path, body, accept: ACCEPT[frames], more: options?.headers }, reader, ctx),
    whole: (path, body, reader, ctx, options) => answered({ path, body, more: options?.headers }, reader, ctx),
    async json(method, path, body, ctx, { ms: jsonMs = limits.jsonMs, bytes: bodyBytes = limits.bodyBytes, headers: more } = {}) {
      const asked = request({ method, path, body, silenceMs: jsonMs, more }, ctx)
      const answer = await askWhole(connection, asked, { provider, bodyBytes, jsonMs }, ctx.signal)
      if (answer.over) throw long(bodyBytes)
      const { status, type } = answer
      if (status >= 300 || typeof answer.body !== 'object') throw refused(status, answer.body, type, answer.retryAfterMs)
      return answer.body
    },
    failed: (status, body) => failed(status, body),
    close: () => connection.close(),
  }
}

/** Creates the requests of an upstream. */
function createRequest(base: BaseUrl, headers: Readonly<Record<string, string>>) {
  const own = { 'user-agent': 'svc', ...lowerCased(headers), 'accept-encoding': 'identity' }
  const fixed = Object.entries(own).flat()
  return (
    { method = 'POST', path, body, accept = ACCEPT_JSON, silenceMs = 0, more }: OutgoingRequest,
    ctx: CallContext
  ): WireRequest => ({
    method,
    path: `${base.path}${path}`,
    headers: [
      ...(more === undefined ? fixed : Object.entries({ ...own, ...more }).flat()),
      ...accept,
      ...(body === undefined ? [] : BODY),
      ...headersOf(ctx),
    ],
    body: body === undefined ? undefined : sentBody(body),
    silenceMs,
  })
}

/** The failure for an answer without events. */
const refusalOf =
  (provider: string, failed: (status: number, body: unknown, retryAfterMs?: number) => SvcError) =>
  (status: number, body: unknown, type: string, retryAfterMs: number | undefined): SvcError => {
    if (status >= 300 && status < 400) return redirected(provider, status)
    return status >= 400 || hasError(body) ? failed(status, body, retryAfterMs) : noEvents(provider, kindOfPage(type))
  }

/** If names differ only in case, the last value wins. */
const lowerCased = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

interface OutgoingRequest {
  readonly method?: 'GET' | 'POST'
  readonly path: string
  readonly body: unknown
  readonly accept?: readonly string[]
  /** Longest silence in milliseconds; 0: only the signal limits the call. */
  readonly silenceMs?: number
  /** Headers of this call. */
  readonly more?: Readonly<Record<string, string>> | undefined
}

const ACCEPT = { events: ['accept', 'text/event-stream'], lines: ['accept', 'application/x-ndjson'] } as const
const ACCEPT_JSON = ['accept', 'application/json']
const BODY = ['content-type', 'application/json']
const SAFE_ID = /^[\w.-]{1,128}$/

/** Headers that connect the log of the upstream with the log of svc. */
const headersOf = (ctx: CallContext): string[] => [
  ...(SAFE_ID.test(ctx.requestId) ? ['x-request-id', ctx.requestId] : []),
  ...Object.entries(traceHeaders(ctx)).flat(),
]

const kindOfPage = (type: string) => {
  if (/html/i.test(type)) return 'a web page'
  if (/json/i.test(type)) return 'JSON'
  return type === 'compressed' ? 'compressed data' : 'an unknown content type'
}

/** Converts an error of a frame reader to a failure, and redacts secrets from its message. */
function readingFailed(provider: string, error: unknown, frame: string | undefined, hide: (text: string) => string): SvcError {
  const code = codeOf(error)
  if (code === 'EVENT_TOO_LARGE') return tooLarge(provider, 'a frame that is too large')
  if (code !== 'MODEL_FAILED')
    return isMistake(error) && !isOtherJson(frame) ? providerBroken(provider, error, hide) : malformed(provider)
  const failure = error as SvcError
  failure.message = hide(failure.message)
  return failure
}

/** JSON that is not an object: all protocols use objects, so this is an error of the upstream. */
function isOtherJson(frame: string | undefined): boolean {
  try {
    return frame !== undefined && !isTree(JSON.parse(frame))
  } catch {
    return false
  }
}

export interface BaseUrl {
  readonly origin: string
  /** The path without a trailing slash. */
  readonly path: string
}

/** Checks a base URL: http or https, without credentials, query and fragment. Throws PROVIDER_CONFIG with a hint. */
export function checkBaseUrl(text: string, provider: string): BaseUrl {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol))
    throw wrong(provider, `must be a URL that begins with http:// or https://${shown(text)}`, hintOf(text))
  if (url.username !== '' || url.password !== '')
    throw wrong(provider, 'must not contain a user or password', 'Name the key in api_key_env or api_key_file instead')
  if (url.search !== '' || url.hash !== '' || /[?#]$/.test(text))
    throw wrong(provider, 'must not contain a query or fragment', 'Remove the text from "?" or "#" on')
  return { origin: url.origin, path: url.pathname.replace(/\/+$/, '') }
}

/** The error does not repeat a text that can contain credentials. */
const shown = (text: string) => (/[@?#]/.test(text) || text.length > 100 ? '' : `, was ${JSON.stringify(text)}`)

const hintOf = (text: string) =>
  /^[\w.-]+(:\d+)?(\/[\w./-]*)?$/.test(text)
    ? `Write http://${text}${text.includes('/') ? '' : '/v1'}`
    : 'Write for example http://localhost:11434/v1'

const wrong = (provider: string, message: string, hint: string): SvcError =>
  svcError('PROVIDER_CONFIG', `providers.${provider}.base_url ${message}`, { where: `providers.${provider}.base_url`, hint })

/** The original of a request, if it is in the protocol of the server. */
export const nativeOf = ({ native }: ModelRequest, protocol: string | undefined): NativeRequest | undefined =>
  native !== undefined && native.protocol === protocol ? native : undefined

/** A header value without control characters. Longer values are not sent. */
const VALUE = /^[\t\x20-\x7e]{1,8192}$/

/**
 * The headers of an original request that go to the server: those of `allowed`. A caller can send any header, so credentials, routing and
 * framing headers never pass.
 */
export function nativeHeaders({ headers = {} }: NativeRequest, allowed: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name, value]) => allowed.includes(name) && typeof value === 'string' && VALUE.test(value))
  )
}
