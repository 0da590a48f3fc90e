import createFetch from 'openapi-fetch'
import type { components } from './api.ts'
import { ApiError, isApiError } from './errors.ts'
import { createEventStream, type EventStream } from './event-stream.ts'
import type { Argument, BodyOf, EventOf, InputOf, Method, PathsOf, QueryOf, ReplyOf, StreamPathsOf } from './paths.ts'
import { createSender, type Credential, type RetryOptions, type SenderOptions } from './sender.ts'

/** Types of the JSON of the API, by their names in /openapi.json. */
export type Schemas = components['schemas']

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

export interface RunOptions extends RequestOptions {
  /** A repeated request with this key starts no second run. Default: a random key for each call. */
  readonly idempotencyKey?: string
  /** Seconds to wait for the end of the run; 0 returns at once. Default: as the server is configured. */
  readonly waitSeconds?: number
}

export interface ResumeOptions extends RequestOptions {
  /** Begins after the event with this id: `lastEventId` of an earlier stream. */
  readonly after?: string | undefined
}

/** An answer to a tool call that asks for approval. */
export type Approval = boolean | { readonly allow: boolean; readonly reason?: string }

export interface ChatStreamOptions extends RequestOptions {
  /** Answers tool calls that ask, one after the other. Makes the turn interactive. Without it, call `chat.answer`. */
  readonly onAsk?: (ask: Schemas['AskEvent']) => Approval | Promise<Approval>
}

export type ChatRequest = BodyOf<'post', '/api/v1/chat'>
export type ChatStreamRequest = BodyOf<'post', '/api/v1/chat/stream'>
export type ChatReply = ReplyOf<'post', '/api/v1/chat'>
export type ChatAnswer = BodyOf<'post', '/api/v1/chat/answer'>
export type RunRequest = BodyOf<'post', '/api/v1/workflows/run'>
export type RunAnswer = BodyOf<'post', '/api/v1/workflows/{id}/answer'>
export type RunSignal = BodyOf<'post', '/api/v1/workflows/{id}/events'>
export type RunPage = ReplyOf<'get', '/api/v1/workflows/runs'>
export type RunSteps = ReplyOf<'get', '/api/v1/workflows/{id}/steps'>

export interface ChatClient {
  /** Sends a message and returns the whole reply. */
  reply(request: ChatRequest, options?: RequestOptions): Promise<ChatReply>
  /** Sends a message and streams the reply. The stream is not resumed: STREAM_CUT if it breaks. */
  stream(request: ChatStreamRequest, options?: ChatStreamOptions): EventStream<Schemas['ChatEvent']>
  /** Allows or denies a tool call of a stream with `interactive: true`. */
  answer(answer: ChatAnswer, options?: RequestOptions): Promise<void>
}

export interface RunsClient {
  /** Starts a workflow. */
  start(request: RunRequest, options?: RunOptions): Promise<Schemas['WorkflowRun']>
  list(query?: QueryOf<'get', '/api/v1/workflows/runs'>, options?: RequestOptions): Promise<RunPage>
  get(id: string, options?: RequestOptions): Promise<Schemas['WorkflowStatus']>
  steps(id: string, options?: RequestOptions): Promise<RunSteps>
  /** Streams the events of a run up to its end. Connects again if the connection breaks, without losing an event. */
  events(id: string, options?: ResumeOptions): EventStream<Schemas['WorkflowEvent']>
  /** Answers a question of `waiting_for`, or of the event `node_waiting`. */
  answer(id: string, answer: RunAnswer, options?: RequestOptions): Promise<void>
  /** Sends an event to the nodes that wait for it. */
  signal(id: string, signal: RunSignal, options?: RequestOptions): Promise<void>
  cancel(id: string, options?: RequestOptions): Promise<Schemas['WorkflowStatus']>
  /** Starts a run that continues where this one failed. */
  retry(id: string, options?: RunOptions): Promise<Schemas['WorkflowRun']>
}

/** All of its methods throw ApiError, and the reason of an abort. */
export interface Client {
  readonly chat: ChatClient
  readonly runs: RunsClient
  /** Streams the events of the server. Connects again if the connection breaks; `svc.events_lost` reports what is lost. */
  events(query?: Omit<QueryOf<'get', '/api/v1/events'>, 'after'>, options?: ResumeOptions): EventStream<Schemas['CloudEvent']>
  get<P extends PathsOf<'get'>>(path: P, ...input: Argument<InputOf<'get', P>, RequestOptions>): Promise<ReplyOf<'get', P>>
  post<P extends PathsOf<'post'>>(path: P, ...input: Argument<InputOf<'post', P>, RequestOptions>): Promise<ReplyOf<'post', P>>
  put<P extends PathsOf<'put'>>(path: P, ...input: Argument<InputOf<'put', P>, RequestOptions>): Promise<ReplyOf<'put', P>>
  patch<P extends PathsOf<'patch'>>(
    path: P,
    ...input: Argument<InputOf<'patch', P>, RequestOptions>
  ): Promise<ReplyOf<'patch', P>>
  delete<P extends PathsOf<'delete'>>(
    path: P,
    ...input: Argument<InputOf<'delete', P>, RequestOptions>
  ): Promise<ReplyOf<'delete', P>>
  /** Streams the events of any other route, over one connection. */
  stream<M extends 'get' | 'post', P extends StreamPathsOf<M>>(
    method: M,
    path: P,
    ...input: Argument<InputOf<M, P>, RequestOptions>
  ): EventStream<EventOf<M, P>>
  /** Like the method of that name, with status and headers of the response, such as `etag`. */
  request<M extends Method, P extends PathsOf<M>>(
    method: M,
    path: P,
    ...input: Argument<InputOf<M, P>, RequestOptions>
  ): Promise<{ readonly data: ReplyOf<M, P>; readonly status: number; readonly headers: Headers }>
}

/** Any request, after its types were checked. */
interface AnyInput extends RequestOptions {
  readonly path?: Readonly<Record<string, string | number>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
}

interface Exchange {
  readonly data: unknown
  readonly response: Response
}

/** Sends a request. With `isStream`, the body of the response is not read. */
type Exchanger = (method: Method, path: string, input: AnyInput, isStream?: boolean) => Promise<Exchange>

const MINUTE_MS = 60_000
/** Requests that a server answers when a model or a tool has finished. */
const SLOW = new Set(['post /api/v1/chat', 'post /api/v1/conversations', 'post /tools/{name}/call'])
const SLOW_TIMEOUT_MS = 10 * MINUTE_MS
const LARGEST_EVENT = 16 * 1024 * 1024
const LARGEST_RESPONSE = 64 * 1024 * 1024

/** POST requests that the server does only once for each `Idempotency-Key`. */
const KEYED = new Set(['/api/v1/workflows/run', '/api/v1/workflows/{id}/retry'])

/** Creates a client. It opens no connection. Throws REQUEST_INVALID. */
export function createClient(options: ClientOptions): Client {
  const exchange = createExchanger(options)
  const limits = {
    idleTimeoutMs: options.idleTimeoutMs ?? MINUTE_MS,
    maxEventLength: options.maxEventLength ?? LARGEST_EVENT,
    reconnect: { minDelayMs: 500, ...options.reconnect },
  }
  const stream: Streamer = (method, path, { after, ...input }, source) =>
    createEventStream<unknown>(
      {
        after,
        isResumed: false,
        ...source,
        async open(last, isFirst, signal) {
          const headers = {
            ...input.headers,
            accept: 'text/event-stream',
            ...(last === undefined ? {} : { 'last-event-id': last }),
          }
          // the stream itself waits between connections
          const retry = isFirst ? input.retry : false
          return (await exchange(method, path, { ...input, headers, signal, ...(retry === undefined ? {} : { retry }) }, true))
            .response
        },
      },
      limits,
      input.signal
    )
  const json = async (method: Method, path: string, input: AnyInput = {}) => (await exchange(method, path, input)).data
  const client = {
    chat: chatOf(json, stream),
    runs: runsOf(json, stream),
    events: (query: Readonly<Record<string, unknown>> = {}, more: ResumeOptions = {}) =>
      stream('get', '/api/v1/events', { query, ...more }, { isResumed: true }),
    get: (path: string, input?: AnyInput) => json('get', path, input),
    post: (path: string, input?: AnyInput) => json('post', path, input),
    put: (path: string, input?: AnyInput) => json('put', path, input),
    patch: (path: string, input?: AnyInput) => json('patch', path, input),
    delete: (path: string, input?: AnyInput) => json('delete', path, input),
    stream: (method: 'get' | 'post', path: string, input: AnyInput = {}) => stream(method, path, input, {}),
    async request(method: Method, path: string, input: AnyInput = {}) {
      const { data, response } = await exchange(method, path, input)
      return { data, status: response.status, headers: response.headers }
    },
  }
  // the generated types describe what the server sends: it checks its responses against the same schemas
  return client as unknown as Client
}

type JsonSender = (method: Method, path: string, input?: AnyInput) => Promise<unknown>

type Source = Partial<Pick<Parameters<typeof createEventStream<unknown>>[0], 'isResumed' | 'isLast' | 'isOver'>>
type Streamer = (
  method: 'get' | 'post',
  path: string,
  input: AnyInput & { readonly after?: string | undefined },
  source: Source
) => EventStream<unknown>

function createExchanger(options: ClientOptions): Exchanger {
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

function chatOf(json: JsonSender, stream: Streamer): ChatClient {
  const isLast = (event: unknown) => (event as Schemas['ChatEvent']).type === 'end'
  const chat = {
    reply: (body: ChatRequest, options: RequestOptions = {}) => json('post', '/api/v1/chat', { body, ...options }),
    stream(body: ChatStreamRequest, { onAsk, ...options }: ChatStreamOptions = {}) {
      const whole = onAsk ? { ...body, interactive: true } : body
      const events = stream('post', '/api/v1/chat/stream', { body: whole, ...options }, { isLast }) as EventStream<
        Schemas['ChatEvent']
      >
      if (!onAsk) return events
      const iterate = () => answered(events, onAsk, answer => chat.answer(answer, options))
      return { lastEventId: undefined, [Symbol.asyncIterator]: iterate }
    },
    async answer(body: ChatAnswer, options: RequestOptions = {}) {
      await json('post', '/api/v1/chat/answer', { body, ...options })
    },
  }
  return chat as ChatClient
}

async function* answered(
  events: AsyncIterable<Schemas['ChatEvent']>,
  onAsk: NonNullable<ChatStreamOptions['onAsk']>,
  answer: (answer: ChatAnswer) => Promise<void>
): AsyncGenerator<Schemas['ChatEvent'], void> {
  let request_id = ''
  for await (const event of events) {
    if (event.type === 'start') request_id = event.request_id
    yield event
    if (event.type !== 'ask') continue
    const approval = await onAsk(event)
    const given = typeof approval === 'boolean' ? { allow: approval } : approval
    await answer({ request_id, call_id: event.call_id, ...given }).catch((error: unknown) => {
      // the question has timed out meanwhile: tool_result says so
      if (!isApiError(error, 'INVALID_VALUE') || error.status !== 404) throw error
    })
  }
}

function runsOf(json: JsonSender, stream: Streamer): RunsClient {
  const RUN = '/api/v1/workflows/{id}'
  const headersOf = ({ idempotencyKey, waitSeconds, headers, ...same }: RunOptions) => ({
    ...(waitSeconds ? { timeoutMs: MINUTE_MS + waitSeconds * 1000 } : {}),
    ...same,
    headers: {
      ...headers,
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      ...(waitSeconds === undefined ? {} : { prefer: waitSeconds > 0 ? `wait=${Math.ceil(waitSeconds)}` : 'respond-async' }),
    },
  })
  const runs = {
    start: (body: RunRequest, options: RunOptions = {}) => json('post', '/api/v1/workflows/run', { body, ...headersOf(options) }),
    list: (query: Readonly<Record<string, unknown>> = {}, options: RequestOptions = {}) =>
      json('get', '/api/v1/workflows/runs', { query, ...options }),
    get: (id: string, options: RequestOptions = {}) => json('get', `${RUN}/status`, { path: { id }, ...options }),
    steps: (id: string, options: RequestOptions = {}) => json('get', `${RUN}/steps`, { path: { id }, ...options }),
    events: (id: string, options: ResumeOptions = {}) =>
      stream(
        'get',
        `${RUN}/events`,
        { path: { id }, ...options },
        {
          isResumed: true,
          isLast: event => ['run_completed', 'run_failed'].includes((event as Schemas['WorkflowEvent']).type),
          isOver: async signal =>
            ((await runs.get(id, { ...options, signal })) as Schemas['WorkflowStatus']).status !== 'running',
        }
      ),
    answer: (id: string, body: RunAnswer, options: RequestOptions = {}) =>
      json('post', `${RUN}/answer`, { path: { id }, body, ...options }),
    signal: (id: string, body: RunSignal, options: RequestOptions = {}) =>
      json('post', `${RUN}/events`, { path: { id }, body, ...options }),
    cancel: (id: string, options: RequestOptions = {}) => json('post', `${RUN}/cancel`, { path: { id }, ...options }),
    retry: (id: string, options: RunOptions = {}) => json('post', `${RUN}/retry`, { path: { id }, ...headersOf(options) }),
  }
  return runs as unknown as RunsClient
}
