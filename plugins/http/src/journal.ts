import { networkOf } from '@svc/address'
import type { HookCallers, Log, Use } from '@svc/core'
import type { HttpFigures, HttpHooks } from '@svc/core/contracts'
import type { Exchange } from './exchange.ts'
import { createSeldom } from './seldom.ts'

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
  /** The gate: from here to the end of its answer a request is active. */
  open(x: Exchange): void
  /** Counts what no gate sees; of one network a second it is one line in the log, which says how many were left out. */
  malformed(one: Malformed): void
  /** What this process has counted, and what it inherited. */
  figures(): HttpFigures
  /** Requests that a worker answered which has ended. */
  inherit(total: number): void
}

/** Nginx's word for a client that left before the answer. */
const CLIENT_LEFT = 499

export function createJournal(log: Log, hooks: HookCallers<HttpHooks>, lasting: Use): Journal {
  let total = 0
  let active = 0
  const due = createSeldom()
  const close = (x: Exchange) => {
    active--
    x.left?.()
    if (!x.res.writableFinished) {
      x.gone = true
      x.ending.abort(clientLeft())
    }
    const status = x.gone && !x.res.headersSent ? CLIENT_LEFT : x.res.statusCode
    const ms = performance.now() - x.began
    const route = x.route?.route.path ?? x.mount?.path ?? ''
    log.info(lineOf(x, route, status, ms), 'request')
    void hooks.done({ method: x.method, route, status, seconds: ms / 1000 }, x.use)
  }
  return {
    open(x) {
      total++
      active++
      whenClosed(x, close)
    },
    malformed({ status, code, requestId, address, counted }) {
      const left_out = due(networkOf(address))
      const line = { method: '', route: '', status, request_id: requestId, address, principal: 'anonymous', error_code: code }
      if (left_out !== undefined) log.info(left_out > 0 ? { ...line, left_out } : line, 'request')
      if (counted) return
      total++
      const use = { ...lasting, principal: { id: 'anonymous', scopes: [], address }, requestId }
      void hooks.done({ method: '', route: '', status, seconds: 0 }, use)
    },
    figures: () => ({ requestsTotal: total, requestsActive: active }),
    inherit: more => void (total += more),
  }
}

/** A request that was pipelined behind another has no socket of its own yet, and may never get one: then its connection's end is its own. */
function whenClosed(x: Exchange, close: (x: Exchange) => void) {
  let open = true
  const once = () => {
    if (!open) return
    open = false
    close(x)
  }
  x.res.on('close', once)
  x.res.on('error', broke) // Node would end the process for a write that comes after the end of its connection
  if (x.res.socket === null) x.req.socket.once('close', once)
}

function lineOf(x: Exchange, route: string, status: number, ms: number) {
  const line = {
    method: x.method,
    route,
    status,
    ms: Math.round(ms * 100) / 100,
    request_id: x.requestId,
    address: x.address,
    principal: x.principal.id,
  }
  if (x.refused !== undefined) return { ...line, error_code: x.refused }
  return x.gone ? { ...line, gone: true } : line
}

const broke = () => {}
const clientLeft = () => new DOMException('the client has left', 'AbortError')
