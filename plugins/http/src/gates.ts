import type { Principal } from '@svc/core'
import type { RouteReply } from '@svc/core/contracts'
import { createBody } from './body.ts'
import type { ServerConfig } from './config.ts'
import { invalidValue, methodNotAllowed, routeUnknown } from './errors.ts'
import type { Exchange, Gate } from './exchange.ts'
import type { Journal } from './journal.ts'
import type { Routing } from './routing.ts'
import { validation } from './validation.ts'

/** What the gates stand on. */
export interface GateParts {
  readonly config: ServerConfig
  readonly routing: Routing
  readonly journal: Journal
}

/** The gates in the order in which every request meets them. */
export function createGates({ config, routing, journal }: GateParts): readonly Gate[] {
  return [
    requestId,
    route(routing),
    x => journal.open(x), // log and metrics: sees also what later gates refuse
    // host and origin, CORS, the cheap gate by address: here
    host,
    authentication,
    // scopes and exact limits: here
    known,
    createBody(config.body_limit),
    validation,
  ]
}

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/

/** Takes the caller's request id where it is fit to be one, else makes one; each answer carries it. */
function requestId(x: Exchange) {
  const given = x.req.headers['x-request-id']
  x.requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : crypto.randomUUID()
  x.headers.push('X-Request-Id', x.requestId)
}

/** Looks where the path leads, without judging: log, metrics and authentication need to know. */
function route(routing: Routing): Gate {
  return x => {
    const { bound, mount, params, allowed } = routing.find(x.method, x.path)
    x.route = bound
    x.mount = mount
    x.params = params
    x.allowed = allowed
  }
}

/** HTTP/1.1 wants exactly one Host. */
function host({ req }: Exchange) {
  const name = req.headers.host
  if (name === undefined && req.httpVersion === '1.1') throw invalidValue('host', 'is missing')
  if (name?.includes(',')) throw invalidValue('host', 'is given more than once')
}

const ALL: readonly string[] = Object.freeze(['*'])
const TRACE = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** Says who asks. The one place that decides it: without authentication everybody may do everything. */
function authentication(x: Exchange) {
  x.principal = anonymous(x)
  const trace = x.req.headers.traceparent
  const use = { signal: x.ending.signal, principal: x.principal, requestId: x.requestId }
  x.use = typeof trace === 'string' && TRACE.test(trace) ? { ...use, trace } : use
}

const anonymous = ({ req }: Exchange): Principal => ({
  id: 'anonymous',
  scopes: ALL,
  address: addressOf(req.socket.remoteAddress ?? ''),
})

const addressOf = (address: string) => (address.startsWith('::ffff:') ? address.slice(7) : address)

/** Refuses what no route answers. */
function known(x: Exchange): void | RouteReply {
  if (x.route || x.mount) return
  if (x.allowed.length === 0) throw routeUnknown(x.method, x.path)
  x.headers.push('Allow', x.allowed.join(', '))
  if (x.method === 'OPTIONS') return { status: 204 }
  throw methodNotAllowed(x.method, x.allowed)
}
