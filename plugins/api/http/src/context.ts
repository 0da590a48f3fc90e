import type { SchemaProblem, Principal, CallContext } from '@svc/core'
import type { Mount, Route } from '@svc/core/contracts'
import type { DefaultContext, Middleware as KoaMiddleware, ParameterizedContext } from 'koa'

/** A route with what is made once for it. */
export interface Bound {
  readonly name: string
  /** The plugin that added it. */
  readonly plugin: string | undefined
  readonly route: Route
  readonly checks: Checks
  /** Its plugin runs in a process of its own: it is no part of the server, and must not act as one. */
  readonly isIsolated: boolean
}

/** The checks of one route, made once and compiled at its first request. */
export interface Checks {
  readonly body: Check | undefined
  readonly query: Check | undefined
}

/** How one schema of a route is held. */
export interface Check {
  readonly faults: (fields: Fields) => SchemaProblem[] | Promise<SchemaProblem[]>
  readonly required: readonly string[]
  /** Query parameters that are numbers or booleans. */
  readonly typed: ReadonlyMap<string, string>
  /** The known names; others are ignored. */
  readonly known: ReadonlySet<string>
}

export type Fields = Readonly<Record<string, unknown>>

/** Koa's context of a request, with our state. */
export type Context = ParameterizedContext<RequestState>

/** Koa middleware over our state. Errors are thrown as service errors; the first middleware turns them into the error record. */
export type Middleware = KoaMiddleware<RequestState, DefaultContext>

/** What the middleware knows of a request: `ctx.state`. */
export interface RequestState {
  /** `performance.now()` when the request came. */
  readonly began: number
  /** Aborts when the client leaves, and when the server ends a stream. */
  readonly ending: AbortController
  requestId: string
  /** The client's address. */
  address: string
  /** W3C `traceparent`, where it is valid. */
  trace: string | undefined
  /** W3C `tracestate` beside it. */
  traceState: string | undefined
  /** Headers that carry a credential, taken off the request: only schemes see them. */
  credentials: Readonly<Record<string, string>>
  /** The header among them that was given more than once. */
  doubled: string | undefined
  principal: Principal
  /** What the handler is called with; made once the principal is known. */
  callContext: CallContext
  /** The route that answers; `undefined` where none does. */
  route: Bound | undefined
  /** The mount that takes the raw request where no route answers. */
  mount: Mount | undefined
  query: Readonly<Record<string, string>>
  /** The body of a route that asks for raw bytes. */
  bytes: Uint8Array | undefined
  /** The error code that the request was refused with. */
  refused: string | undefined
  /** Runs once when the answer is out or the client has gone. */
  left: (() => void) | undefined
  /** The client has gone, or has been cut off. */
  gone: boolean
}

const NOBODY: Principal = Object.freeze({ id: '', scopes: Object.freeze([]) })
/** What a request without credentials has. */
export const NO_CREDENTIALS: RequestState['credentials'] = Object.freeze({})
const NO_QUERY: RequestState['query'] = Object.freeze({})

export function createState(): RequestState {
  const ending = new AbortController()
  return {
    began: performance.now(),
    ending,
    requestId: '',
    address: '',
    trace: undefined,
    traceState: undefined,
    credentials: NO_CREDENTIALS,
    doubled: undefined,
    principal: NOBODY,
    callContext: { signal: ending.signal, principal: NOBODY, requestId: '' },
    route: undefined,
    mount: undefined,
    query: NO_QUERY,
    bytes: undefined,
    refused: undefined,
    left: undefined,
    gone: false,
  }
}

/** The state of the server that requests depend on. */
export interface Life {
  /** The server is about to end: each answer closes its connection. */
  draining: boolean
  /** No other process takes over: new requests are refused. */
  ending: boolean
  /** Requests whose answer is a stream that has begun. */
  readonly streams: Set<Context>
}
