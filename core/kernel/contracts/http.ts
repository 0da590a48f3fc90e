import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type CallContext, defineService, defineSlot, type JsonSchema, type Series } from '@svc/core'
import type { PublicError } from './chat.ts'
import type { Json } from './store.ts'

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/**
 * A request, checked: body and query fit the route's schemas. Header names are in lower case. No header carries a credential: `authorization`, `cookie`,
 * `proxy-authorization`, `x-api-key`, `x-goog-api-key` and all that a credential scheme declares are taken out.
 */
export interface RouteRequest {
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly body: Json | undefined
  /** The raw body, of a route that accepts bytes. */
  readonly bytes?: Uint8Array
}

/** Which headers routes may set. */
interface RouteHeaders {
  readonly server: readonly string[]
  readonly isolated: readonly string[]
  readonly prefix: string
}

/** Which headers a route may set. Names are in lower case. */
export const ROUTE_HEADERS: RouteHeaders = {
  /** Framing and hop-by-hop headers (RFC 9110, 7.6.1): the server sets them, no route does. */
  server: [
    'connection',
    'content-length',
    'date',
    'http2-settings',
    'keep-alive',
    'proxy-authenticate',
    'proxy-authentication-info',
    'proxy-authorization',
    'proxy-connection',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
  ],
  /**
   * All that a route of a plugin in a process of its own may set: the server leaves out and logs what else it answers. A list of what is allowed, because
   * browsers, caches and proxies act on more headers than a list of forbidden ones could name.
   */
  isolated: [
    'allow',
    'cache-control',
    'content-disposition',
    'content-language',
    'content-type',
    'deprecation',
    'etag',
    'expires',
    'last-modified',
    'location',
    'retry-after',
    'sunset',
    'vary',
  ],
  /** Such a route may also set what only the clients of its plugin know, under names that begin so. */
  prefix: 'x-plugin-',
}

/** An answer: `body` goes as JSON, `text` as it is. Without both: no content. */
export interface RouteReply {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly text?: string
}

/** An answer of the OpenAPI document: a status and the schema of its body. */
export interface RouteResponse {
  readonly description: string
  readonly schema?: JsonSchema
  readonly contentType?: string
}

/**
 * One route: plain data in, data or a stream out. Path parameters are written `:id`. A route has `handle` or `stream`, never both.
 * A stream yields text as it goes on the wire; what it throws before its first item is an ordinary error record.
 */
export interface Route {
  readonly method: HttpMethod
  readonly path: string
  readonly summary: string
  /** The scope it needs; absent: open to everybody, authentication or not. */
  readonly scope?: 'chat' | 'read' | 'workflows' | 'tools' | 'admin'
  /** Not counted by limits. */
  readonly uncounted?: boolean
  readonly query?: JsonSchema
  readonly body?: JsonSchema
  /**
   * What its body is; default JSON, an object. A form becomes an object of texts (a list where a name comes twice), plain text a text. Bytes come as they are, of any media type and without a
   * schema, in `request.bytes`.
   */
  readonly accepts?: 'json' | 'form' | 'text' | 'bytes'
  /** Bytes that its body may have; default `server.body_limit`. */
  readonly bodyLimit?: number
  readonly responses?: Readonly<Record<string, RouteResponse>>
  /** Media type of a stream. Streams of `text/event-stream` get heartbeats. */
  readonly streams?: string
  /** The stream does not end by itself: the server cuts it off when the credential of its reader holds no more. */
  readonly endless?: boolean
  /** Who reads it learns how the server is used: what refuses an unknown path names it in `details.see`. */
  readonly guide?: boolean
  handle?(request: RouteRequest, ctx: CallContext): Promise<RouteReply>
  stream?(request: RouteRequest, ctx: CallContext): AsyncIterable<string>
}

/**
 * Routes under a name of the plugin's choice. The manifest says method, path and scope of each; one without a scope answers every client and needs the
 * permission `public_routes`.
 */
export const Routes = defineSlot<Route>('routes', {
  api: 1,
  methods: { handle: 'call', stream: 'stream' },
  declared: ['method', 'path', 'scope'],
  permission: { without: 'scope', name: 'public_routes' },
})

/**
 * Raw requests below a path, in process only (MCP streams, pages with files): the one thing that cannot cross a process. A mount has `handle` or `answer`, never
 * both.
 */
export interface Mount {
  readonly path: string
  readonly scope?: Route['scope']
  /** As of a route. */
  readonly guide?: Route['guide']
  /** Requests that open a stream without an end, by what a header of them holds: they count as streams of their principal. */
  readonly streams?: readonly { readonly method: HttpMethod; readonly header: string; readonly holds: string }[]
  /** Writes the answer itself. */
  handle?(request: IncomingMessage, response: ServerResponse, ctx: CallContext): Promise<void>
  /** Answers what the server writes, or else what writes the answer. */
  answer?(request: IncomingMessage, ctx: CallContext): Promise<RouteReply | MountWriter>
}
/** Writes an answer that does not come in one piece. */
export type MountWriter = (response: ServerResponse) => Promise<void>

export const Mounts = defineSlot<Mount>('mounts', {
  api: 1,
  methods: { handle: 'call', answer: 'call' },
  local: true,
  permission: { without: 'scope', name: 'public_routes' },
})

/** A request that has been answered. `route` is the template, `''` where none matched; so is `method` of what was refused as no HTTP, which took 0 seconds. */
export interface RequestDone {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly seconds: number
}
export interface HttpHooks {
  done: Series<RequestDone>
}

/** The record that every error of the API is told with. */
export interface ErrorRecord {
  readonly success: false
  readonly error: string
  readonly error_code: string
  readonly details: Readonly<Record<string, unknown>>
}

/** One code of the API, its usual status and its meaning. */
export interface ErrorCode {
  readonly code: string
  readonly status: number
  readonly meaning: string
}

/** The figures of the server, since it began. */
export interface HttpMetrics {
  readonly requestsTotal: number
  readonly requestsActive: number
}

/** The HTTP server. */
export interface Http {
  /** Where it listens, once it does. */
  address(ctx: CallContext): Promise<{ readonly host: string; readonly port: number; readonly url: string } | undefined>
  metrics(ctx: CallContext): Promise<HttpMetrics>
  /** How the API tells an error that must go out as part of an answer (an `error` event of a stream). */
  explain(error: PublicError, ctx: CallContext): Promise<{ readonly status: number; readonly record: ErrorRecord }>
  /** All codes the API tells errors with. */
  codes(ctx: CallContext): Promise<readonly ErrorCode[]>
}
export const Http = defineService<Http, HttpHooks>('http', {
  api: 1,
  methods: { address: 'call', metrics: 'call', explain: 'call', codes: 'call' },
  hooks: { done: 'series' },
})

/** How a counted request stands. */
export interface Allowance {
  /** False: it is one too many, and has not been counted. */
  readonly allowed: boolean
  /** The window that is counted down; of a refused request the one that refused it. Seconds. */
  readonly limit: number
  readonly window: number
  readonly remaining: number
  /** Unix seconds at which the window ends. */
  readonly reset: number
  /** Whole seconds until it may be tried again; 0 where allowed. */
  readonly retryAfter: number
  /** How the shortest window stands: that is what headers show. Absent: it is the one above. */
  readonly shown?: Pick<Allowance, 'limit' | 'remaining' | 'reset'>
}

/** Counts requests by `ctx.principal` (its address or its id, as configured), exactly, for all workers. Without a provider nothing is limited. */
export interface Limits {
  /** Counts one request, unless it is too many. Throws UNAVAILABLE when it cannot count. */
  take(ctx: CallContext): Promise<Allowance>
  /** Whether anything is limited at all; fixed once the host is ready. False: `take` need not be asked, and no header tells of limits. */
  isActive(ctx: CallContext): Promise<boolean>
}
export const Limits = defineService<Limits>('limits', { api: 1, methods: { take: 'call', isActive: 'call' } })

/** An address of this machine; port 0 stands for any that is free. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/**
 * Listens in place of this process, in process only: a supervisor whose workers share a port. An `http.Server` takes what it hands over by
 * `server.emit('connection', connection)`.
 */
export interface Listener {
  /**
   * For a tap of `Host.hooks.ready`. Answers the port; connections come when this process is ready, until it drains. Throws what the system reports, such as
   * EADDRINUSE.
   */
  listen(address: ListenAddress, take: (connection: Socket) => void, ctx: CallContext): Promise<number>
}
/** What listens in place of this process, where something does; else a plugin listens itself. */
export const Listeners = defineSlot<Listener>('listeners', { api: 1, methods: { listen: 'call' }, local: true })
