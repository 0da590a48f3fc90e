import type { Socket } from 'node:net'
import { type CallContext, createStepBatcher, type HookCallers, type Log } from '@svc/core'
import type { HttpHooks, HttpMetrics, Peers, WorkerMetrics } from '@svc/core/contracts'
import { networkOf } from '@svc/plugin-kit'
import type { Addresses } from './listener.ts'
import { type Context, createState, type Life, type Middleware, type RequestState } from './context.ts'
import { createLogThrottle } from './log-throttle.ts'
import { stopping } from './errors.ts'

/** What was answered without becoming a request. */
interface Malformed {
  readonly status: number
  readonly code: string
  readonly requestId: string
  /** Of the connection: no header of it was read. */
  readonly address: string
  /** A request whose body went wrong is under way, and counted when it ends. */
  readonly counted: boolean
}

/** What is written down of each request: figures, a line in the log, the hook `done`. */
export interface Journal {
  /** From here to the end of its answer a request is active. */
  readonly middleware: Middleware
  /** Counts what no gate sees; of one network a second it is one line in the log, which says how many were left out. */
  malformed(one: Malformed): void
  /** What this process has counted, and what it inherited. */
  metrics(): HttpMetrics
  /** Requests that a worker answered which has ended. */
  inherit(total: number): void
}

/** Nginx's word for a client that left before the answer. */
const CLIENT_LEFT = 499

export function createJournal(log: Log, hooks: HookCallers<HttpHooks>, lasting: CallContext): Journal {
  let total = 0
  let active = 0
  const due = createLogThrottle()
  const close = ({ req, res, state }: Context) => {
    active--
    state.left?.()
    if (!res.writableFinished) {
      state.gone = true
      state.ending.abort(clientLeft())
    }
    const method = req.method ?? ''
    const route = state.route?.route.path ?? state.mount?.path ?? ''
    const status = state.gone && !res.headersSent ? CLIENT_LEFT : res.statusCode
    const ms = performance.now() - state.began
    log.info(lineOf(state, { method, route, status, ms: Math.round(ms * 100) / 100 }), 'request')
    void hooks.done({ method, route, status, seconds: ms / 1000 }, state.callContext)
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

/** A request that was pipelined behind another has no socket of its own yet, and may never get one: then its connection's end is its own. */
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
  res.on('error', broke) // Node would end the process for a write that comes after the end of its connection
  const forget = res.socket === null ? whenCut(req.socket, once) : undefined
}

/** Requests whose answers wait behind others, by connection. One listener does for all of them: it lasts as long as the connection, and they come without end. */
const behind = new WeakMap<Socket, Set<() => void>>()

/** Calls `work` when the connection ends; returns what forgets it. */
function whenCut(socket: Socket, work: () => void): () => void {
  let works = behind.get(socket)
  if (!works) {
    const all = (works = new Set())
    behind.set(socket, all)
    socket.once('close', () => all.forEach(one => one()))
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

const broke = () => {}
const clientLeft = () => new DOMException('the client has left', 'AbortError')

/** The figures of all workers together. */
export interface ServerMetrics {
  readonly read: (callContext: CallContext) => Promise<HttpMetrics>
  /** For a tap of `Peers.hooks.metrics`: adds those of this worker. */
  readonly own: (metrics: WorkerMetrics) => WorkerMetrics
  /** For a tap of `Peers.hooks.inherit`. */
  readonly inherit: (metrics: WorkerMetrics) => void
}

const NAME = 'http'
const NONE: HttpMetrics = { requestsTotal: 0, requestsActive: 0 }

// `own` of this process, or of another worker, has written the value under this name
const partOf = (metrics: WorkerMetrics) => (metrics[NAME] ?? NONE) as unknown as HttpMetrics

export function createServerMetrics(journal: Journal, peers: Peers | undefined): ServerMetrics {
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

/** Outermost: the state of the request, the headers of every answer, and the moment at which Koa sends it. */
export function begin(common: Readonly<Record<string, string>>, life: Life): Middleware {
  const together = createStepBatcher() // the ends of answers
  const headers = new Map(Object.entries(common))
  return async (ctx, next) => {
    ctx.state = createState()
    ctx.url = originForm(ctx.url)
    ctx.res.setHeaders(headers)
    await next()
    if (ctx.respond === false) return
    if (life.draining) ctx.set('Connection', 'close')
    await new Promise<void>(together)
  }
}

/** A request line may name the whole URL, as to a proxy: only path and query matter. `#` and white space are part of the path, as they came. */
function originForm(url: string): string {
  const target = url.startsWith('/') ? url : (/^https?:\/\/[^/?#]*([^#]*)/i.exec(url)?.[1] ?? url)
  const rooted = target.startsWith('/') ? target : `/${target}`
  return /[#\s]/.test(rooted) ? rooted.replaceAll(/[#\s]/g, encodeURIComponent) : rooted
}

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/

/** Takes the caller's request id where it is valid, else makes one. Each answer carries it. */
export const requestId: Middleware = (ctx, next) => {
  const given = ctx.req.headers['x-request-id']
  ctx.state.requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : crypto.randomUUID()
  ctx.set('X-Request-Id', ctx.state.requestId)
  return next()
}

const TRACE = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/
const LONGEST_STATE = 512
const VISIBLE = /^[\x20-\x7e]+$/

/** Takes up a W3C trace: calls on behalf of the request carry it on. */
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

/** The standard shortens a state that is too long by whole entries, the oldest first. */
function traceStateOf(given: string): string | undefined {
  const end = given.length <= LONGEST_STATE ? given.length : given.lastIndexOf(',', LONGEST_STATE)
  const state = given.slice(0, Math.max(0, end))
  return VISIBLE.test(state) ? state : undefined
}

/** Notes the client's address. */
export const address =
  ({ clientOf }: Pick<Addresses, 'clientOf'>): Middleware =>
  (ctx, next) => {
    ctx.state.address = clientOf(ctx.req)
    return next()
  }

/** A server that ends takes nothing new on the connections that are still open; one with a successor answers until they are idle. */
export const leaving =
  (life: Life): Middleware =>
  (ctx, next) => {
    if (life.ending && !ctx.state.route?.route.uncounted) throw stopping()
    return next()
  }
