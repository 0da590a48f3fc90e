import type { Socket } from 'node:net'
import { type CallContext, createStepBatcher, type HookCallers, type Log, type OpenSpan, type StartSpan } from '@svc/core'
import type { HttpHooks, HttpMetrics, Peers, WorkerMetrics } from '@svc/core/contracts'
import { networkOf } from '@svc/plugin-kit'
import type { Addresses } from './listener.ts'
import { type Context, createState, type Life, type Middleware, type RequestState } from './context.ts'
import { createLogThrottle } from './log-throttle.ts'
import { stopping } from './errors.ts'

/** An answer to bytes that are not a valid request. */
interface Malformed {
  readonly status: number
  readonly code: string
  readonly requestId: string
  /** The address of the connection, because the headers were not read. */
  readonly address: string
  /** The connection has a request with a broken body, which is counted when it ends. */
  readonly counted: boolean
}

/** Records each request: metrics, a log line, the hook `done`. */
export interface RequestJournal {
  /** Counts a request as active until its answer ends. */
  readonly middleware: Middleware
  /** Records a malformed request. The log gets at most one line per network and second, with the number of suppressed lines. */
  malformed(answered: Malformed): void
  /** Returns the counts of this process, including inherited ones. */
  metrics(): HttpMetrics
  /** Adds the requests of a worker that has ended. */
  inherit(total: number): void
}

/** A balancer asks for these each second. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/health/live', '/health/ready'])
const isGoodProbe = (route: string, status: number) => PROBES.has(route) && status < 300

/** Nginx's status code for a client that disconnected before the answer. */
const CLIENT_LEFT = 499

export function createJournal(log: Log, hooks: HookCallers<HttpHooks>, lasting: CallContext): RequestJournal {
  let total = 0
  let active = 0
  const due = createLogThrottle()
  const close = ({ req, res, state }: Context) => {
    active--
    state.left?.()
    state.freeBody?.()
    if (!res.writableFinished) {
      state.gone = true
      state.ending.abort(clientLeft())
    }
    const method = req.method ?? ''
    const route = state.route?.route.path ?? state.mount?.path ?? ''
    const status = state.gone && !res.headersSent ? CLIENT_LEFT : res.statusCode
    const ms = performance.now() - state.began
    const line = lineOf(state, { method, route, status, ms: Math.round(ms * 100) / 100 })
    log[isGoodProbe(route, status) ? 'debug' : 'info'](line, 'request')
    void hooks.done({ method, route, status, seconds: ms / 1000 }, state.callContext)
    if (state.span) endSpan(state.span, status, state.refused)
  }
  return {
    middleware(ctx, next) {
      total++
      active++
      whenClosed(ctx, close)
      return next()
    },
    malformed({ status, code, requestId, address, counted }) {
      const left_out = due(networkOf(address))
      const line = { method: '', route: '', status, request_id: requestId, address, principal: 'anonymous', error_code: code }
      if (left_out !== undefined) log.info(left_out > 0 ? { ...line, left_out } : line, 'request')
      if (counted) return
      total++
      const callContext = { ...lasting, principal: { id: 'anonymous', scopes: [], address }, requestId }
      void hooks.done({ method: '', route: '', status, seconds: 0 }, callContext)
    },
    metrics: () => ({ requestsTotal: total, requestsActive: active }),
    inherit: more => void (total += more),
  }
}

/** Ends the span of a request. Failures of the server mark it as failed, as OpenTelemetry defines it. */
function endSpan(span: OpenSpan, status: number, refused: string | undefined) {
  span.set({ 'http.response.status_code': status })
  if (status >= 500 || status === CLIENT_LEFT) span.fail(refused ?? String(status))
  span.end()
}

/**
 * Starts the span of a request that the server has accepted. A refused request makes none: a caller without a valid credential
 * cannot fill the store with traces.
 */
export const startSpan =
  (span: StartSpan): Middleware =>
  (ctx, next) => {
    const { state } = ctx
    const { route } = state.route ?? {}
    if (route?.uncounted || route?.untraced || ctx.state.mount?.untraced) return next()
    const method = ctx.req.method ?? ''
    const path = route?.path ?? state.mount?.path ?? ''
    const attributes = { 'http.request.method': method, 'http.route': path, 'svc.request.id': state.requestId }
    state.span = span(`${method} ${path}`, state.callContext, { kind: 'server', root: true, startedAt: state.began, attributes })
    state.callContext = state.span.ctx
    return next()
  }

/** A request that is received faster makes no span of it. */
const RECEIVED_MS = 1

/**
 * Makes a span of what happened before the route runs: authentication, limits, reading and checking the body. The first requests of
 * a worker load the code for it.
 */
export const receivedSpan =
  (span: StartSpan): Middleware =>
  (ctx, next) => {
    const { span: request, began } = ctx.state
    if (request?.isRecording && performance.now() - began >= RECEIVED_MS)
      span('receive request', request.ctx, { startedAt: began }).end()
    return next()
  }

/** Calls `close` once when the request ends. A pipelined request has no socket until its turn comes, so it also ends with its connection. */
function whenClosed(ctx: Context, close: (ctx: Context) => void) {
  const { req, res } = ctx
  let open = true
  const once = () => {
    if (!open) return
    open = false
    forget?.()
    close(ctx)
  }
  res.on('close', once)
  res.on('error', ignoreError) // without a listener, a write after the end of the connection would end the process
  const forget = res.socket === null ? whenCut(req.socket, once) : undefined
}

/** Pipelined requests by connection. They share one listener, because a connection can carry any number of requests. */
const behind = new WeakMap<Socket, Set<() => void>>()

/** Calls `work` when the connection ends. Returns a function that cancels this. */
function whenCut(socket: Socket, work: () => void): () => void {
  let works = behind.get(socket)
  if (!works) {
    const all = (works = new Set())
    behind.set(socket, all)
    socket.once('close', () => all.forEach(run => run()))
  }
  works.add(work)
  return () => void works.delete(work)
}

interface Answered {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly ms: number
}

function lineOf({ requestId, address, principal, refused, gone }: RequestState, answered: Answered) {
  const line = { ...answered, request_id: requestId, address, principal: principal.id }
  if (refused !== undefined) return { ...line, error_code: refused }
  return gone ? { ...line, gone: true } : line
}

const ignoreError = () => {}
const clientLeft = () => new DOMException('the client disconnected', 'AbortError')

/** The request metrics of all workers together. */
export interface RequestMetrics {
  readonly read: (callContext: CallContext) => Promise<HttpMetrics>
  /** For a tap of `Peers.hooks.metrics`: adds the metrics of this worker. */
  readonly own: (metrics: WorkerMetrics) => WorkerMetrics
  /** For a tap of `Peers.hooks.inherit`. */
  readonly inherit: (metrics: WorkerMetrics) => void
}

const NAME = 'http'
const NONE: HttpMetrics = { requestsTotal: 0, requestsActive: 0 }

// the cast is safe: only `own`, in this process or another worker, writes the value under this name
const partOf = (metrics: WorkerMetrics) => (metrics[NAME] ?? NONE) as unknown as HttpMetrics

export function createServerMetrics(journal: RequestJournal, peers: Peers | undefined): RequestMetrics {
  return {
    read: async callContext => (peers ? (await peers.metrics(callContext)).reduce(add, NONE) : journal.metrics()),
    own: metrics => ({ ...metrics, [NAME]: { ...journal.metrics() } }),
    inherit: metrics => journal.inherit(partOf(metrics).requestsTotal),
  }
}

function add(sum: HttpMetrics, metrics: WorkerMetrics): HttpMetrics {
  const { requestsTotal, requestsActive } = partOf(metrics)
  return {
    requestsTotal: sum.requestsTotal + requestsTotal,
    requestsActive: sum.requestsActive + (metrics.ended ? 0 : requestsActive),
  }
}

/** On an answer of a worker whose successor serves already: the next connection leads to the successor, with its configuration. */
const DRAINING = { 'X-Svc-Draining': 'true' }

/** The outermost middleware: creates the state of the request and sets the headers of every answer. Answers of one tick are sent together. */
export function begin(common: Readonly<Record<string, string>>, life: Life): Middleware {
  const together = createStepBatcher() // batches the ends of answers
  const headers = new Map(Object.entries(common))
  return async (ctx, next) => {
    ctx.state = createState()
    ctx.url = originForm(ctx.url)
    ctx.res.setHeaders(headers)
    await next()
    if (ctx.respond === false) return
    if (life.draining) ctx.set({ Connection: 'close', ...(life.ending ? {} : DRAINING) })
    await new Promise<void>(together)
  }
}

/** Returns path and query of a request target, which can be an absolute URL. `#` and white space count as part of the path. */
export function originForm(url: string): string {
  const target = url.startsWith('/') ? url : (/^https?:\/\/[^/?#]*([^#]*)/i.exec(url)?.[1] ?? url)
  const rooted = target.startsWith('/') ? target : `/${target}`
  return /[#\s]/.test(rooted) ? rooted.replaceAll(/[#\s]/g, encodeURIComponent) : rooted
}

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/

/** Uses the caller's request id if it is valid, otherwise generates an id. Each answer carries it. */
export const requestId: Middleware = (ctx, next) => {
  const given = ctx.req.headers['x-request-id']
  ctx.state.requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : crypto.randomUUID()
  ctx.set('X-Request-Id', ctx.state.requestId)
  return next()
}

const TRACE = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/
const LONGEST_STATE = 512
const VISIBLE = /^[\x20-\x7e]+$/

/** Reads the W3C trace headers, so that calls on behalf of the request can pass them on. */
export const trace: Middleware = (ctx, next) => {
  const { state } = ctx
  const { traceparent: given, tracestate } = ctx.req.headers
  if (typeof given === 'string' && TRACE.test(given)) {
    state.trace = given
    if (typeof tracestate === 'string') state.traceState = traceStateOf(tracestate)
  }
  state.callContext = { signal: state.ending.signal, principal: state.principal, requestId: state.requestId }
  return next()
}

/** Shortens a long trace state by whole entries, oldest first, as the standard requires. */
function traceStateOf(given: string): string | undefined {
  const end = given.length <= LONGEST_STATE ? given.length : given.lastIndexOf(',', LONGEST_STATE)
  const state = given.slice(0, Math.max(0, end))
  return VISIBLE.test(state) ? state : undefined
}

/** Stores the client's address in the state of the request. */
export const address =
  ({ clientOf }: Pick<Addresses, 'clientOf'>): Middleware =>
  (ctx, next) => {
    ctx.state.address = clientOf(ctx.req)
    return next()
  }

/** Refuses new requests while the server stops without a successor. With a successor, it keeps answering on open connections. */
export const leaving =
  (life: Life): Middleware =>
  (ctx, next) => {
    if (life.ending && !ctx.state.route?.route.uncounted) throw stopping()
    return next()
  }
