import { type ChatClient, createChatClient } from './chat.ts'
import type { EventStream } from './event-stream.ts'
import {
  type AnyInput,
  type ClientOptions,
  createExchanger,
  createStreamer,
  type JsonSender,
  MINUTE_MS,
  type RequestOptions,
  type ResumeOptions,
  type Streamer,
} from './exchange.ts'
import type { Argument, BodyOf, EventOf, InputOf, Method, PathsOf, QueryOf, ReplyOf, Schemas, StreamPathsOf } from './paths.ts'

export interface RunOptions extends RequestOptions {
  /** A repeated request with this key starts no second run. Default: a random key for each call. */
  readonly idempotencyKey?: string
  /** Seconds to wait for the end of the run; 0 returns at once. Default: as the server is configured. */
  readonly waitSeconds?: number
}

export type RunRequest = BodyOf<'post', '/api/v1/workflows/run'>
export type RunAnswer = BodyOf<'post', '/api/v1/workflows/{id}/answer'>
export type RunSignal = BodyOf<'post', '/api/v1/workflows/{id}/events'>
export type RunQueries = ReplyOf<'get', '/api/v1/workflows/{id}/queries'>
export type RunQueryValue = ReplyOf<'get', '/api/v1/workflows/{id}/queries/{name}'>
export type WorkflowVersions = ReplyOf<'get', '/api/v1/workflows/versions'>
export type RunReplay = BodyOf<'post', '/api/v1/workflows/{id}/replay'>
export type RunBulkChange = BodyOf<'post', '/api/v1/workflows/runs/bulk'>
export type DeadLetter = ReplyOf<'get', '/api/v1/workflows/dead-letters/{id}'>
export type RunPage = ReplyOf<'get', '/api/v1/workflows/runs'>
export type RunSteps = ReplyOf<'get', '/api/v1/workflows/{id}/steps'>

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
  /** The queries and events of the definition of a run. */
  queries(id: string, options?: RequestOptions): Promise<RunQueries>
  /** Reads a query of a run. */
  query(id: string, name: string, options?: RequestOptions): Promise<RunQueryValue>
  cancel(id: string, options?: RequestOptions): Promise<Schemas['WorkflowStatus']>
  /** The versions of a workflow with their open runs. */
  versions(workflow: string, options?: RequestOptions): Promise<WorkflowVersions>
  /** Starts a run that continues where this one failed. */
  retry(id: string, options?: RunOptions): Promise<Schemas['WorkflowRun']>
  /** Starts a run that repeats an ended one from a node, with the recorded results of the nodes before it. */
  replay(id: string, replay?: RunReplay, options?: RunOptions): Promise<Schemas['WorkflowRun']>
  /** Pauses a run when its running nodes end. `paused_at` is null while one still runs. */
  pause(id: string, options?: RequestOptions): Promise<Schemas['WorkflowStatus']>
  resume(id: string, options?: RequestOptions): Promise<Schemas['WorkflowStatus']>
  /** The result of a completed run or the output of a step, of any size. */
  result(id: string, query?: QueryOf<'get', '/api/v1/workflows/{id}/result'>, options?: RequestOptions): Promise<unknown>
  /** Cancels, retries or drops all runs that meet the conditions. `dry_run` only counts them. */
  bulk(change: RunBulkChange, options?: RequestOptions): Promise<Schemas['WorkflowBulkChange']>
  readonly deadLetters: DeadLettersClient
}

/** Runs that failed for good. */
export interface DeadLettersClient {
  list(query?: QueryOf<'get', '/api/v1/workflows/dead-letters'>, options?: RequestOptions): Promise<RunPage>
  get(id: string, options?: RequestOptions): Promise<DeadLetter>
  /** Starts a run that continues it, unless another one does. */
  retry(id: string, options?: RunOptions): Promise<Schemas['WorkflowRun']>
  /** Deletes it. */
  drop(id: string, options?: RequestOptions): Promise<void>
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

/** Creates a client. It opens no connection. Throws REQUEST_INVALID. */
export function createClient(options: ClientOptions): Client {
  const exchange = createExchanger(options)
  const stream = createStreamer(exchange, options)
  const json = async (method: Method, path: string, input: AnyInput = {}) => (await exchange(method, path, input)).data
  const client = {
    chat: createChatClient(json, stream),
    runs: runsOf(json, stream),
    events: (query: Readonly<Record<string, unknown>> = {}, more: ResumeOptions = {}) =>
      stream('get', '/api/v1/events', { query, ...more }, { isResumed: () => true }),
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

function runsOf(json: JsonSender, stream: Streamer): RunsClient {
  const RUN = '/api/v1/workflows/{id}'
  const LETTERS = '/api/v1/workflows/dead-letters'
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
          isResumed: () => true,
          isLast: event => ['run_completed', 'run_failed'].includes((event as Schemas['WorkflowEvent']).type),
          isOver: async signal =>
            ((await runs.get(id, { ...options, signal })) as Schemas['WorkflowStatus']).status !== 'running',
        }
      ),
    answer: (id: string, body: RunAnswer, options: RequestOptions = {}) =>
      json('post', `${RUN}/answer`, { path: { id }, body, ...options }),
    signal: (id: string, body: RunSignal, options: RequestOptions = {}) =>
      json('post', `${RUN}/events`, { path: { id }, body, ...options }),
    queries: (id: string, options: RequestOptions = {}) => json('get', `${RUN}/queries`, { path: { id }, ...options }),
    query: (id: string, name: string, options: RequestOptions = {}) =>
      json('get', `${RUN}/queries/{name}`, { path: { id, name }, ...options }),
    versions: (workflow: string, options: RequestOptions = {}) =>
      json('get', '/api/v1/workflows/versions', { query: { workflow }, ...options }),
    cancel: (id: string, options: RequestOptions = {}) => json('post', `${RUN}/cancel`, { path: { id }, ...options }),
    retry: (id: string, options: RunOptions = {}) => json('post', `${RUN}/retry`, { path: { id }, ...headersOf(options) }),
    replay: (id: string, body: RunReplay = {}, options: RunOptions = {}) =>
      json('post', `${RUN}/replay`, { path: { id }, body, ...headersOf(options) }),
    pause: (id: string, options: RequestOptions = {}) => json('post', `${RUN}/pause`, { path: { id }, ...options }),
    resume: (id: string, options: RequestOptions = {}) => json('post', `${RUN}/resume`, { path: { id }, ...options }),
    result: (id: string, query: Readonly<Record<string, unknown>> = {}, options: RequestOptions = {}) =>
      json('get', `${RUN}/result`, { path: { id }, query, ...options }),
    bulk: (body: RunBulkChange, options: RequestOptions = {}) =>
      json('post', '/api/v1/workflows/runs/bulk', { body, ...options }),
    deadLetters: {
      list: (query: Readonly<Record<string, unknown>> = {}, options: RequestOptions = {}) =>
        json('get', LETTERS, { query, ...options }),
      get: (id: string, options: RequestOptions = {}) => json('get', `${LETTERS}/{id}`, { path: { id }, ...options }),
      retry: (id: string, options: RunOptions = {}) =>
        json('post', `${LETTERS}/{id}/retry`, { path: { id }, ...headersOf(options) }),
      drop: (id: string, options: RequestOptions = {}) => json('delete', `${LETTERS}/{id}`, { path: { id }, ...options }),
    },
  }
  return runs as unknown as RunsClient
}
