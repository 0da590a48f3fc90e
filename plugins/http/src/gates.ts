import type { RouteReply } from '@svc/core/contracts'
import type { Addresses } from './address.ts'
import type { AllowanceGate } from './allowance.ts'
import type { Authentication } from './authentication.ts'
import { createBody } from './body.ts'
import type { ServerConfig } from './config.ts'
import type { Cors } from './cors.ts'
import type { Crowd } from './crowd.ts'
import { methodNotAllowed, routeUnknown, stopping } from './errors.ts'
import type { Exchange, Gate } from './exchange.ts'
import { createFlood } from './flood.ts'
import type { HostGuard } from './host-guard.ts'
import type { Journal } from './journal.ts'
import type { Routing } from './routing.ts'
import { validation } from './validation.ts'

/** What the gates stand on; those that others need too are made before. */
export interface GateParts {
  readonly config: ServerConfig
  readonly routing: Routing
  readonly journal: Journal
  readonly addresses: Addresses
  readonly host: HostGuard
  readonly cors: Cors
  /** Takes the credentials off the request. */
  readonly credentials: Gate
  readonly authentication: Authentication
  readonly crowd: Crowd
  readonly standing: Gate
  readonly allowance: AllowanceGate
}

/** The gates in the order in which every request meets them. */
export function createGates(parts: GateParts): readonly Gate[] {
  const { config } = parts
  return [
    requestId,
    trace,
    address(parts.addresses),
    route(parts.routing),
    x => parts.journal.open(x), // log and metrics: sees also what later gates refuse
    parts.host.gate,
    parts.cors.gate, // and the guard of origins; answers preflights
    leaving,
    createFlood(config.max_requests_per_second),
    parts.credentials, // from here on only schemes see them
    parts.authentication.gate, // and scopes
    parts.crowd.gate,
    parts.standing, // streams without an end
    parts.allowance.gate,
    known(parts.routing),
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

const TRACE = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

const LONGEST_STATE = 512
const VISIBLE = /^[\x20-\x7e]+$/

/** Of a state that is too long the oldest entries go, whole: so the standard has it. */
function stateOf(given: string): string | undefined {
  const end = given.length <= LONGEST_STATE ? given.length : given.lastIndexOf(',', LONGEST_STATE)
  const state = given.slice(0, Math.max(0, end))
  return VISIBLE.test(state) ? state : undefined
}

/** Takes up a W3C trace: whatever is called on behalf of the request carries it on. */
function trace(x: Exchange) {
  const { traceparent: given, tracestate: state } = x.req.headers
  if (typeof given === 'string' && TRACE.test(given)) {
    x.trace = given
    if (typeof state === 'string') x.traceState = stateOf(state)
  }
  x.use = { signal: x.ending.signal, principal: x.principal, requestId: x.requestId }
}

function address(addresses: Addresses): Gate {
  return x => {
    x.address = addresses.clientOf(x.req)
  }
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

/** A server that ends takes nothing new on the connections that are still open; one with a successor answers until they are idle. */
function leaving({ life, route }: Exchange) {
  if (life.ending && !route?.route.uncounted) throw stopping()
}

/** Refuses what no route answers. */
function known(routing: Routing): Gate {
  return (x): void | RouteReply => {
    if (x.route || x.mount) return
    if (x.allowed.length === 0) throw routeUnknown(x.method, x.path, routing.guides())
    x.headers.push('Allow', x.allowed.join(', '))
    if (x.method === 'OPTIONS') return { status: 204 }
    throw methodNotAllowed(x.method, x.allowed)
  }
}
