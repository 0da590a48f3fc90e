import type { CallContext, OpenSpan, Principal, SchemaProblem } from '@svc/core'
import type { Mount, Route } from '@svc/core/contracts'
import type { ActiveItems } from '@svc/plugin-kit'
import type { DefaultContext, Middleware as KoaMiddleware, ParameterizedContext } from 'koa'

/** A route with its name, its plugin and its compiled checks. */
export interface Bound {
  readonly name: string
  /** The plugin that added it. */
  readonly plugin: string | undefined
  readonly route: Route
  readonly checks: Checks
  /** The plugin runs in its own process: the server limits what its routes can do. */
  readonly isIsolated: boolean
}

/** The checks of one route, compiled at its first request. */
export interface Checks {
  readonly body: SchemaCheck | undefined
  readonly query: SchemaCheck | undefined
}

/** The check of one schema of a route. */
export interface SchemaCheck {
  readonly problems: (fields: Fields) => SchemaProblem[] | Promise<SchemaProblem[]>
  readonly required: readonly string[]
  /** True if the schema certainly accepts an empty object, which then needs no check. */
  readonly acceptsNothing: boolean
  /** True if further properties are allowed, and have no meaning. */
  readonly isOpen: boolean
  /** Query parameters that are numbers or booleans. */
  readonly typed: ReadonlyMap<string, string>
  /** Names in the schema. Others are ignored, unless the schema forbids them. */
  readonly known: ReadonlySet<string>
}

export type Fields = Readonly<Record<string, unknown>>

/** Koa's context of a request, with our state. */
export type Context = ParameterizedContext<RequestState>

/** Koa middleware over our state. Errors are thrown as service errors; the first middleware turns them into the error record. */
export type Middleware = KoaMiddleware<RequestState, DefaultContext>

/** The state of a request that middleware shares: `ctx.state`. */
export interface RequestState {
  /** `performance.now()` when the request arrived. */
  readonly began: number
  /** Aborts when the client disconnects and when the server ends a stream. */
  readonly ending: AbortController
  requestId: string
  /** The client's address. */
  address: string
  /** W3C `traceparent`, if valid. */
  trace: string | undefined
  /** W3C `tracestate`, if `traceparent` is valid. */
  traceState: string | undefined
  /** Credential headers, removed from the request: only schemes see them. */
  credentials: Readonly<Record<string, string>>
  /** The digests of the body that schemes asked for, by algorithm. */
  bodyDigests: ReadonlyMap<string, string>
  /** The name of a credential header that the client sent more than once. */
  repeatedHeader: string | undefined
  principal: Principal
  /** The request came over the control socket. */
  isOperator: boolean
  /** The context that handlers receive; complete after authentication. */
  callContext: CallContext
  /** The span of the request, from authentication on. */
  span: OpenSpan | undefined
  /** The route that matches the request. */
  route: Bound | undefined
  /** The mount that takes the raw request if no route matches. */
  mount: Mount | undefined
  query: Readonly<Record<string, string>>
  /** The body as sent, for a route that accepts bytes or asks for the raw body. */
  bytes: Uint8Array | undefined
  /** The error code of the answer, if the request failed. */
  refused: string | undefined
  /** Runs once when the answer is sent or the client has disconnected. */
  left: (() => void) | undefined
  /** The same, for the memory of the body. */
  freeBody: (() => void) | undefined
  /** Ends the event stream of the answer with this event. Returns false if it cannot: a part of another event was already sent. */
  endStream: ((event: string) => boolean) | undefined
  /** The client has disconnected, or the server closed its connection. */
  gone: boolean
}

const NO_PRINCIPAL: Principal = Object.freeze({ id: '', scopes: Object.freeze([]) })
/** The `credentials` of a request without any. */
export const NO_CREDENTIALS: RequestState['credentials'] = Object.freeze({})
const NO_DIGESTS: RequestState['bodyDigests'] = new Map()
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
    bodyDigests: NO_DIGESTS,
    repeatedHeader: undefined,
    principal: NO_PRINCIPAL,
    isOperator: false,
    callContext: { signal: ending.signal, principal: NO_PRINCIPAL, requestId: '' },
    span: undefined,
    route: undefined,
    mount: undefined,
    query: NO_QUERY,
    bytes: undefined,
    refused: undefined,
    left: undefined,
    freeBody: undefined,
    endStream: undefined,
    gone: false,
  }
}

/** The state of the server that requests depend on. */
export interface Life {
  /** The server is stopping: each answer closes its connection. */
  draining: boolean
  /** The server is stopping without a successor: it refuses new requests. */
  ending: boolean
  /** Requests whose stream has started. */
  readonly streams: ActiveItems<Context>
}
