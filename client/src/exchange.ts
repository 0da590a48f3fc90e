import createFetch from 'openapi-fetch'
import { ApiError } from './errors.ts'
import { createEventStream, type EventSource, type EventStream } from './event-stream.ts'
import type { Method } from './paths.ts'
import { createSender, type Credential, type RetryOptions, type SenderOptions } from './sender.ts'

export interface ClientOptions extends SenderOptions {
  /** Address of the server, with the path prefix of a proxy if there is one. In a browser it can be a path, such as `/`. */
  readonly url: string | URL
  /** Sent as `X-API-Key`. */
  readonly apiKey?: Credential | undefined
  /** Sent as `Authorization: Bearer`. */
  readonly token?: Credential | undefined
  /** Replaces the global `fetch`. It must pass on the signal of the request. */
  readonly fetch?: ((request: Request) => Promise<Response>) | undefined
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>
  /** Repetition of failed requests; false turns it off. */
  readonly retry?: RetryOptions | false
  /** Time for a whole response, and for the headers of a stream. Default 60,000; 600,000 where the server waits for a model or a tool. */
  readonly timeoutMs?: number
  /** How streams of runs and events connect again. Default: 8 failed attempts in a row, from 0.5 s to 30 s apart. */
  readonly reconnect?: RetryOptions
  /** Time without a byte after which a stream counts as broken. Default 60,000. */
  readonly idleTimeoutMs?: number
  /** Maximum characters of a response that is no stream. Default 64 Mi. */
  readonly maxResponseLength?: number
  /** Maximum characters of an event. Default 16 Mi. */
  readonly maxEventLength?: number
}

/** Options of a single request. */
export interface RequestOptions {
  readonly signal?: AbortSignal | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
  readonly retry?: RetryOptions | false
}

export interface ResumeOptions extends RequestOptions {
  /** Begins after the event with this id: `lastEventId` of an earlier stream. */
  readonly after?: string | undefined
}

/** Any request, after its types were checked. */
export interface AnyInput extends RequestOptions {
  readonly path?: Readonly<Record<string, string | number>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
}

interface Exchange {
  readonly data: unknown
  readonly response: Response
}

/** Sends a request. With `isStream`, the body of the response is not read. */
export type Exchanger = (method: Method, path: string, input: AnyInput, isStream?: boolean) => Promise<Exchange>

export const MINUTE_MS = 60_000
/** Requests that a server answers when a model or a tool has finished. */
const SLOW = new Set(['post /api/v1/chat', 'post /api/v1/conversations', 'post /tools/{name}/call'])
const SLOW_TIMEOUT_MS = 10 * MINUTE_MS
const LARGEST_EVENT = 16 * 1024 * 1024
const LARGEST_RESPONSE = 64 * 1024 * 1024

/** POST requests that the server does only once for each `Idempotency-Key`. */
const KEYED = new Set([
  '/api/v1/workflows/run',
  '/api/v1/workflows/{id}/retry',
  '/api/v1/workflows/{id}/replay',
  '/api/v1/workflows/dead-letters/{id}/retry',
])

export type JsonSender = (method: Method, path: string, input?: AnyInput) => Promise<unknown>

interface Source extends Partial<Pick<EventSource<unknown>, 'isResumed' | 'isLast' | 'isOver'>> {
  /** The request that continues the stream after its first connection. Default: the first request. */
  readonly next?: () => { readonly method: Method; readonly path: string; readonly names: AnyInput['path'] }
}
export type Streamer = (
  method: 'get' | 'post',
  path: string,
  input: AnyInput & { readonly after?: string | undefined },
  source: Source
) => EventStream<unknown>

/** Streams of routes. They connect again if their source is resumed. */
export function createStreamer(exchange: Exchanger, options: ClientOptions): Streamer {
  const limits = {
    idleTimeoutMs: options.idleTimeoutMs ?? MINUTE_MS,
    maxEventLength: options.maxEventLength ?? LARGEST_EVENT,
    reconnect: { minDelayMs: 500, ...options.reconnect },
  }
  return (method, path, { after, ...input }, { next, ...source }) =>
    createEventStream<unknown>(
      {
        after,
        isResumed: () => false,
        ...source,
        async open(last, isFirst, signal) {
          const headers = {
            ...input.headers,
            accept: 'text/event-stream',
            ...(last === undefined ? {} : { 'last-event-id': last }),
          }
          if (isFirst) return (await exchange(method, path, { ...input, headers, signal }, true)).response
          // the stream itself waits between connections
          const again = { ...input, headers, signal, retry: false } as const
          if (!next) return (await exchange(method, path, again, true)).response
          const { body: _, ...same } = again
          const { names, ...other } = next()
          return (await exchange(other.method, other.path, { ...same, path: names ?? {} }, true)).response
        },
      },
      limits,
      input.signal
    )
}

export function createExchanger(options: ClientOptions): Exchanger {
  const send = createSender(options)
  const http = createFetch<AnyPaths>({ baseUrl: baseUrlOf(options.url) })
  return async (method, path, { path: names = {}, query, body, signal, headers, timeoutMs, retry }, isStream = false) => {
    checkNames(names)
    const key = method === 'post' && KEYED.has(path) ? { 'idempotency-key': randomKey() } : {}
    const own = { ...lowerCase(options.headers), ...key, ...lowerCase(headers) }
    const sendOptions = {
      timeoutMs: timeoutMs ?? options.timeoutMs ?? (SLOW.has(`${method} ${path}`) ? SLOW_TIMEOUT_MS : MINUTE_MS),
      retry: retry ?? options.retry ?? {},
      maxLength: options.maxResponseLength ?? LARGEST_RESPONSE,
      isStream,
    }
    let isSent = false
    const { data, response } = await http
      .request(method, path, {
        params: { path: names, ...(query === undefined ? {} : { query }) },
        ...(body === undefined ? {} : { body }),
        ...(signal === undefined ? {} : { signal }),
        headers: own,
        parseAs: isStream ? 'stream' : 'json',
        fetch(request) {
          isSent = true
          return send(request, sendOptions)
        },
      })
      .catch((error: unknown) => {
        if (!isSent) throw requestInvalid()
        throw error instanceof SyntaxError ? notJson(error) : error
      })
    return { data, response }
  }
}

/** What `openapi-fetch` needs to know of any API. The types of `Client` are the narrow ones. */
type AnyPaths = Record<string, Record<Method, AnyOperation>>
interface AnyOperation {
  readonly parameters: {
    readonly path?: Readonly<Record<string, string | number>>
    readonly query?: Readonly<Record<string, unknown>>
  }
  readonly requestBody?: { readonly content: { readonly 'application/json': unknown } }
  readonly responses: { readonly 200: { readonly content: { readonly 'application/json': unknown } } }
}

/** Without the cause: its message can contain a header. */
const requestInvalid = () =>
  new ApiError('the request cannot be built', {
    code: 'REQUEST_INVALID',
    hint: 'Check that the headers have no line breaks and that the body is JSON',
  })

const notJson = (cause: SyntaxError) =>
  new ApiError('the response is not valid JSON', {
    code: 'RESPONSE_INVALID',
    hint: 'Check that url leads to a svc server',
    cause,
  })

const lowerCase = (headers: Readonly<Record<string, string>> = {}) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

function baseUrlOf(url: string | URL): string {
  const text = String(url)
  const invalid = (problem: string, hint: string) => new ApiError(`url ${problem}`, { code: 'REQUEST_INVALID', hint })
  // checked here, because the errors of fetch contain the whole address
  if (/^\w+:\/\/[^/?#]*@/.test(text)) throw invalid('contains a user name or a password', 'Set apiKey or token instead')
  if (/[?#]/.test(text)) throw invalid('contains a query or a fragment', 'Remove it')
  const { location } = globalThis as { readonly location?: { readonly href: string } }
  try {
    if (/^https?:$/.test(new URL(text, location?.href).protocol)) return text.replace(/\/+$/, '')
  } catch {
    // it is reported below
  }
  throw invalid('is not an HTTP address', 'Write it like http://127.0.0.1:8080; a path such as / works in browsers only')
}

/** An empty name, and `..`, would lead to another route. */
function checkNames(names: Readonly<Record<string, string | number>>): void {
  for (const [name, value] of Object.entries(names))
    if (/^\.{0,2}$/.test(String(value))) throw new ApiError(`${name} must not be empty, "." or ".."`, { code: 'REQUEST_INVALID' })
}

/** `crypto.randomUUID` is missing on pages without TLS. */
const randomKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('')
