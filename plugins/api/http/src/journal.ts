import type { Socket } from 'node:net'
import { networkOf } from '@svc/plugin-kit'
import type { HookCallers, Log, CallContext } from '@svc/core'
import type { WorkerMetrics, HttpMetrics, HttpHooks, Peers } from '@svc/core/contracts'
import type { Context, Middleware, RequestState } from './context.ts'
import { createLogThrottle } from './log-throttle.ts'

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

// what is told under this name is what `own` has put there, in this process or in one of its like
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
