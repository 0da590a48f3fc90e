import { type CallContext, codeOf, type SvcError, svcError } from '@svc/core'
import type { ModelEvent } from '@svc/core/contracts'
import { askWhole, type FrameReader, StreamedAnswer } from './answers.ts'
import { connect, type RequestParts } from './connection.ts'
import { EventStream } from './event-stream.ts'
import {
  answerFailure,
  createHide,
  hasError,
  malformed,
  noEvents,
  type ReadFailure,
  redirected,
  secretsOf,
  socketFailure,
  tooLarge,
} from './failure.ts'
import { sentBody } from './json.ts'

export interface UpstreamLimits {
  /** Milliseconds to a connection. */
  readonly connectMs?: number
  /** Milliseconds for a whole call of `json`. */
  readonly jsonMs?: number
  /** Bytes of a body that is no stream. */
  readonly bodyBytes?: number
  /** Bytes of one frame. */
  readonly frameBytes?: number
  /** Connections at once; more calls wait. */
  readonly connections?: number
}

export interface UpstreamOptions {
  /** Name of the entry of `providers`: for words. */
  readonly provider: string
  /** http or https, without credentials, query and fragment. */
  readonly baseUrl: string
  /** Sent with each request, the one with the key included. */
  readonly headers: Readonly<Record<string, string>>
  /** Never in any word: blanked out of what the upstream says. Headers that carry secrets are known by their name. */
  readonly secrets: readonly string[]
  readonly limits?: UpstreamLimits
  /** What an error body says in this wire's own terms; what it leaves out follows from the status. */
  readonly failureOf?: ReadFailure
}

/** The HTTP upstream of a provider. All it throws is MODEL_FAILED, or what the signal aborted with. */
export interface Upstream {
  /** POSTs JSON and reads server-sent events; begins with the first `next`. Closes the socket when `ctx.signal` aborts or the reader leaves. */
  stream(path: string, body: unknown, reader: FrameReader, ctx: CallContext): AsyncIterableIterator<ModelEvent, undefined>
  /** The same for an answer that comes whole, as one JSON: `reader.whole` takes it. A stream that comes all the same is read too. */
  whole(path: string, body: unknown, reader: FrameReader, ctx: CallContext): AsyncIterableIterator<ModelEvent, undefined>
  /** One JSON for another, within a time limit. */
  json(method: 'GET' | 'POST', path: string, body: unknown, ctx: CallContext): Promise<unknown>
  /** The failure that an error inside a stream stands for: for a `FrameReader` to throw. */
  failed(status: number, body: unknown): SvcError
  /** Ends all that runs. */
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

/** An upstream at one base URL. Opens nothing before its first call. */
export function createUpstream({ provider, baseUrl, headers, secrets, failureOf, ...options }: UpstreamOptions): Upstream {
  const limits = { ...LIMITS, ...options.limits }
  const base = checkBaseUrl(baseUrl, provider)
  const connection = connect(base.origin, limits)
  const hide = createHide(secretsOf(secrets, headers))
  const fixed = Object.entries({ 'user-agent': 'svc', ...lowerCased(headers), 'accept-encoding': 'identity' }).flat()
  const request = (
    { method = 'POST', path, body, accept = ACCEPT_JSON, silenceMs = 0 }: Asked,
    ctx: CallContext
  ): RequestParts => ({
    method,
    path: `${base.path}${path}`,
    headers: [...fixed, ...accept, ...(body === undefined ? [] : BODY), ...headersOf(ctx)],
    body: body === undefined ? undefined : sentBody(body),
    silenceMs,
  })
  const failed = (status: number, body: unknown, retryAfterMs?: number) =>
    answerFailure({ provider, status, body, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }, failureOf, hide)
  const refused = (status: number, body: unknown, type: string, retryAfterMs: number | undefined) => {
    if (status >= 300 && status < 400) return redirected(provider, status)
    return status >= 400 || hasError(body) ? failed(status, body, retryAfterMs) : noEvents(provider, kindOfPage(type))
  }
  const long = () => tooLarge(provider, `a body of more than ${limits.bodyBytes} bytes`)
  const answered = (asked: Asked, reader: FrameReader, ctx: CallContext) => {
    const events = new EventStream(ctx.signal)
    const broken = (error: unknown) => socketFailure(provider, error)
    const answer = new StreamedAnswer({
      send: handler => connection.send(request(asked, ctx), handler, error => events.end({ reason: broken(error) })),
      events,
      reader,
      frameBytes: limits.frameBytes,
      errorBytes: ERROR_BYTES,
      wholeBytes: limits.bodyBytes,
      refused,
      long,
      unreadable: error => readingFailed(provider, error, hide),
      broken,
    })
    return events.from(answer)
  }
  return {
    stream: (path, body, reader, ctx) => answered({ path, body, accept: ACCEPT_EVENTS }, reader, ctx),
    whole: (path, body, reader, ctx) => answered({ path, body }, reader, ctx),
    async json(method, path, body, ctx) {
      const asked = request({ method, path, body, silenceMs: limits.jsonMs }, ctx)
      const answer = await askWhole(connection, asked, { provider, ...limits }, ctx.signal)
      if (answer.over) throw long()
      const { status, type } = answer
      if (status >= 300 || typeof answer.body !== 'object') throw refused(status, answer.body, type, answer.retryAfterMs)
      return answer.body
    },
    failed: (status, body) => failed(status, body),
    close: () => connection.close(),
  }
}

/** Of names that differ in case only the last counts. */
const lowerCased = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

interface Asked {
  readonly method?: 'GET' | 'POST'
  readonly path: string
  readonly body: unknown
  readonly accept?: readonly string[]
  /** Milliseconds; 0: the signal alone has limits. */
  readonly silenceMs?: number
}

const ACCEPT_EVENTS = ['accept', 'text/event-stream']
const ACCEPT_JSON = ['accept', 'application/json']
const BODY = ['content-type', 'application/json']
const SAFE_ID = /^[\w.-]{1,128}$/
const TRACE = /^[\da-f-]{55,128}$/
const STATE = /^[\x20-\x7e]{1,512}$/

/** Leads from the upstream's log to ours. */
const headersOf = ({ requestId, trace, traceState }: CallContext): string[] => [
  ...(SAFE_ID.test(requestId) ? ['x-request-id', requestId] : []),
  ...(trace !== undefined && TRACE.test(trace) ? ['traceparent', trace, ...stateOf(traceState)] : []),
]

const stateOf = (state: string | undefined) => (state !== undefined && STATE.test(state) ? ['tracestate', state] : [])

const kindOfPage = (type: string) => {
  if (/html/i.test(type)) return 'a web page'
  if (/json/i.test(type)) return 'JSON'
  return type === 'compressed' ? 'compressed data' : 'something'
}

/** What a frame reader threw: its own failure, or that the frame makes no sense. The words of an upstream lose their secrets. */
function readingFailed(provider: string, error: unknown, hide: (text: string) => string): SvcError {
  const code = codeOf(error)
  if (code === 'EVENT_TOO_LARGE') return tooLarge(provider, 'a frame that is too large')
  if (code !== 'MODEL_FAILED') return malformed(provider)
  const failure = error as SvcError
  failure.message = hide(failure.message)
  return failure
}

export interface BaseUrl {
  readonly origin: string
  /** Without the slash at its end: a path that begins with one can follow. */
  readonly path: string
}

/** Takes a base URL: http or https, without credentials, query and fragment. Throws PROVIDER_CONFIG with what to write instead. */
export function checkBaseUrl(text: string, provider: string): BaseUrl {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol))
    throw wrong(provider, `must be a URL that begins with http:// or https://${shown(text)}`, hintOf(text))
  if (url.username !== '' || url.password !== '')
    throw wrong(provider, 'must have no user and no password in it', 'name the key in api_key_env or api_key_file instead')
  if (url.search !== '' || url.hash !== '' || /[?#]$/.test(text))
    throw wrong(provider, 'must have no query and no fragment', 'leave out what follows "?" or "#"')
  return { origin: url.origin, path: url.pathname.replace(/\/+$/, '') }
}

/** The error does not repeat a text that can contain credentials. */
const shown = (text: string) => (/[@?#]/.test(text) || text.length > 100 ? '' : `, was ${JSON.stringify(text)}`)

const hintOf = (text: string) =>
  /^[\w.-]+(:\d+)?(\/[\w./-]*)?$/.test(text)
    ? `write http://${text}${text.includes('/') ? '' : '/v1'}`
    : 'write for example http://localhost:11434/v1'

const wrong = (provider: string, message: string, hint: string): SvcError =>
  svcError('PROVIDER_CONFIG', `providers.${provider}.base_url ${message}`, { where: `providers.${provider}.base_url`, hint })
