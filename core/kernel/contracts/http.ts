import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type CallContext, defineService, defineSlot, type JsonSchema, type Series } from '@svc/core'
import type { PublicError } from './chat.ts'
import type { Json } from './store.ts'

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/**
 * A validated request: body and query match the schemas of the route. Header names are in lower case. Headers with credentials
 * are removed: `authorization`, `cookie`, `proxy-authorization`, `x-api-key`, `x-goog-api-key` and those that auth schemes
 * declare.
 */
export interface RouteRequest {
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly body: Json | undefined
  /** The raw body, for a route that accepts bytes. */
  readonly bytes?: Uint8Array
  /** The body as sent, byte for byte, for a route with `rawBody`. */
  readonly rawBody?: Uint8Array
}

/** Lists of headers that routes can set. */
interface RouteHeaders {
  readonly server: readonly string[]
  readonly isolated: readonly string[]
  readonly prefix: string
  readonly api: readonly string[]
  readonly apiPrefixes: readonly string[]
  readonly apiReserved: readonly string[]
}

/** Headers that a route can set. Names are in lower case. */
export const ROUTE_HEADERS: RouteHeaders = {
  /** Framing and hop-by-hop headers (RFC 9110, 7.6.1). The server sets them; routes cannot. */
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
   * Headers that a route of an isolated plugin can set. The server removes and logs all others. It is a list of allowed
   * headers, because browsers, caches and proxies act on more headers than a list of forbidden ones could name.
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
  /** Prefix of further headers that such a route can set, for clients of its plugin. */
  prefix: 'x-plugin-',
  /** Headers for the clients of model APIs. Such a route, and every error format, can set them. */
  api: ['request-id', 'retry-after', 'retry-after-ms', 'x-should-retry', 'x-svc-dropped'],
  /** Prefixes of further headers of model APIs. */
  apiPrefixes: ['anthropic-', 'openai-', 'x-ratelimit-'],
  /** The headers with these prefixes that only the server sets. */
  apiReserved: ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'],
}

/**
 * A response: `body` is sent as JSON, `text` and `bytes` unchanged. It has at most one of them, and without any no content.
 * Without a header `content-type`, bytes are `application/octet-stream`.
 */
export interface RouteReply {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly text?: string
  readonly bytes?: Uint8Array
}

/** The head of a stream: status and headers of what follows. */
export interface RouteStreamHead extends Pick<RouteReply, 'status' | 'headers'> {
  /**
   * Milliseconds, at most 60,000, that the server holds the head back while the stream has no further item. An error in this time
   * becomes an ordinary error response. Then the server sends the head, and heartbeats. Default: 0.
   */
  readonly holdMs?: number
}

/**
 * An item of a stream: text or bytes to send. The first item can be a reply instead, decided per request: with `body`, `text` or
 * `bytes` it is the whole response, otherwise it is the head of the stream that follows.
 */
export type RouteStreamItem = string | Uint8Array | RouteReply | RouteStreamHead

/** A response in the OpenAPI document: description and schema of its body. */
export interface RouteResponse {
  readonly description: string
  readonly schema?: JsonSchema
  /** Default: `application/json`. Several: the request decides. */
  readonly contentType?: string | readonly string[]
  /** Schema of the data of an event, for a response that can also be an event stream (`text/event-stream`). */
  readonly events?: JsonSchema
}

/**
 * A route: plain data in, data or a stream out. Path parameters are written `:id`; the last segment can be `*rest`, which is the rest of
 * the path with its slashes. A route has either `handle` or `stream`. A
 * stream yields text and bytes as they are sent, after an optional reply. An error before its first item becomes an ordinary error
 * record.
 */
export interface Route {
  readonly method: HttpMethod
  readonly path: string
  readonly summary: string
  /** Further text for the OpenAPI document. */
  readonly description?: string
  /** The required scope. Absent: open to all clients, even with authentication on. */
  readonly scope?: 'chat' | 'read' | 'workflows' | 'tools' | 'admin'
  /** Not counted by rate limits, and without a trace. */
  readonly uncounted?: boolean
  /** Requests of this route make no trace: reading traces must not add to them. */
  readonly untraced?: boolean
  /**
   * The route changes a version of a thing: the client names it in `If-Match`, and the route answers PRECONDITION_FAILED for another
   * one. The OpenAPI document then has the header and the status 412. `or-new`: it also makes new things, with `If-None-Match: *`.
   * `optional`: a client can leave the header out.
   */
  readonly conditional?: boolean | 'or-new' | 'optional'
  readonly query?: JsonSchema
  readonly body?: JsonSchema
  /**
   * Format of the body. Default: JSON, an object. A form becomes an object of strings (a list for a repeated name), plain text
   * a string. Bytes of any media type arrive in `request.bytes`, without a schema.
   */
  readonly accepts?: 'json' | 'form' | 'text' | 'bytes'
  /** The route also gets the body as sent, in `request.rawBody`, to verify a signature of it. */
  readonly rawBody?: boolean
  /** Maximum size of the body in bytes. Default: `server.body_limit`. */
  readonly bodyLimit?: number
  readonly responses?: Readonly<Record<string, RouteResponse>>
  /** Media type of a stream, unless its first item sets another. Streams of `text/event-stream` get heartbeats. */
  readonly streams?: string
  /**
   * The text that the server sends in the pauses of its event streams, instead of the comment `:`. Comments or complete events, at
   * most 1,000 characters: `event: ping\ndata: {"type":"ping"}\n\n`.
   */
  readonly heartbeat?: string
  /**
   * The stream never ends on its own. The server closes it when the credential of its reader expires. The plugin ends it in a tap of
   * `Host.hooks.closing`.
   */
  readonly endless?: boolean
  /** The route documents the API. Error records for unknown paths name it in `details.see`. */
  readonly guide?: boolean
  handle?(request: RouteRequest, ctx: CallContext): Promise<RouteReply>
  stream?(request: RouteRequest, ctx: CallContext): AsyncIterable<RouteStreamItem>
}

/**
 * Routes by a name that the plugin chooses. The manifest declares method, path and scope of each. A route without a scope
 * serves every client and needs the permission `public_routes`.
 */
export const Routes = defineSlot<Route>('routes', {
  api: 1,
  methods: { handle: 'call', stream: 'stream' },
  declared: ['method', 'path', 'scope'],
  permission: { without: 'scope', name: 'public_routes' },
})

/**
 * Raw requests below a path (MCP streams, pages with files). Only for plugins in process: raw requests cannot cross a process.
 * A mount has either `handle`, `answer` or `off`.
 */
export interface Mount {
  readonly path: string
  readonly scope?: Route['scope']
  /** As in `Route`. */
  readonly guide?: Route['guide']
  /** The server sends browsers that open `/` to this mount, rather than to one that documents the API. */
  readonly home?: boolean
  /** As in `Route`: for files of a page. */
  readonly untraced?: boolean
  /**
   * The path below which frames with an opaque origin load their files: the server then accepts GET and HEAD with `Origin: null`. Their
   * scripts cannot read the answers, because these have no CORS headers.
   */
  readonly sandboxed?: string
  /** Why nothing is served below the path, and what to do. Error records for unknown paths there say it. Other plugins can serve the paths. */
  readonly off?: string
  /** Requests that open endless streams, recognized by the content of a header. They count as streams of their principal. */
  readonly streams?: readonly { readonly method: HttpMethod; readonly header: string; readonly holds: string }[]
  /** Writes the response itself. */
  handle?(request: IncomingMessage, response: ServerResponse, ctx: CallContext): Promise<void>
  /** Returns a reply for the server to write, or a function that writes the response. */
  answer?(request: IncomingMessage, ctx: CallContext): Promise<RouteReply | MountWriter>
}
/** Writes a response in several parts. */
export type MountWriter = (response: ServerResponse) => Promise<void>

export const Mounts = defineSlot<Mount>('mounts', {
  api: 1,
  methods: { handle: 'call', answer: 'call' },
  local: true,
  permission: { without: 'scope', name: 'public_routes' },
})

/**
 * A completed request. `route` is the template, or `''` when no route matched. For a request that is not valid HTTP, `method`
 * is `''` and `seconds` is 0.
 */
export interface RequestDone {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly seconds: number
}
export interface HttpHooks {
  done: Series<RequestDone>
}

/** The record of every API error. */
export interface ErrorRecord {
  readonly success: false
  readonly error: string
  readonly error_code: string
  readonly details: Readonly<Record<string, unknown>>
}

/** A request that the server refused, or that failed. */
export interface FailedRequest {
  /** The record that the server sends without a format. */
  readonly record: ErrorRecord
  /** The status of the response. A format cannot change it. */
  readonly status: number
  /** Seconds after which to try again, if known. */
  readonly retryAfter?: number
  readonly requestId: string
  readonly method: string
  /** The path as sent, without the query. At most 2,000 characters. */
  readonly path: string
}

/** The response to a failed request in the format of another API. */
export interface FormattedError {
  /** The JSON body: an object, at most 64 KiB. */
  readonly body: Readonly<Record<string, unknown>>
  /** Headers of `ROUTE_HEADERS.api`, and with its prefixes. The server removes others. */
  readonly headers?: Readonly<Record<string, string>>
  /**
   * The error as the end of an event stream whose head was already sent: complete events, at most 64 KiB. Without it, the server
   * closes the connection.
   */
  readonly event?: string
}

/**
 * The format of all error responses below a path, those of the server included: credentials, limits, unknown paths, invalid
 * bodies. If several formats match, that with the longest path applies, then one with a header.
 *
 * A format of an isolated plugin applies to routes of its plugin, and to unknown paths if no other plugin has a route or mount
 * below its path.
 */
export interface ErrorFormat {
  /** Literal segments, at least one: `/v1`. It matches `/v1` and all paths below, as sent. */
  readonly path: string
  /** A header, in lower case, without which a request does not match. */
  readonly header?: string
  /**
   * Formats an error. The context has no principal. If the call fails, or takes more than half a second, or returns anything
   * else, the server sends its own record.
   */
  format(failed: FailedRequest, ctx: CallContext): Promise<FormattedError>
}

/** Formats by a name that the plugin chooses. The manifest declares path and header of each. */
export const ErrorFormats = defineSlot<ErrorFormat>('error_formats', {
  api: 1,
  methods: { format: 'call' },
  declared: ['path', 'header'],
})

/** An error code of the API with its usual status and its meaning. */
export interface ErrorCode {
  readonly code: string
  readonly status: number
  readonly meaning: string
}

/** Metrics of the server since its start. */
export interface HttpMetrics {
  readonly requestsTotal: number
  readonly requestsActive: number
}

/** The HTTP server. */
export interface Http {
  /** The address, once the server listens. */
  address(ctx: CallContext): Promise<{ readonly host: string; readonly port: number; readonly url: string } | undefined>
  metrics(ctx: CallContext): Promise<HttpMetrics>
  /** Maps an error to status and record, for an error inside a response (an `error` event of a stream). */
  explain(error: PublicError, ctx: CallContext): Promise<{ readonly status: number; readonly record: ErrorRecord }>
  /** All error codes of the API. */
  codes(ctx: CallContext): Promise<readonly ErrorCode[]>
}
export const Http = defineService<Http, HttpHooks>('http', {
  api: 1,
  methods: { address: 'call', metrics: 'call', explain: 'call', codes: 'call' },
  hooks: { done: 'series' },
})

/** State of a rate limit after a request. */
export interface Allowance {
  /** False: the request exceeds the limit and is not counted. */
  readonly allowed: boolean
  /** The limit and length of the window, in seconds. For a rejected request, the window that rejected it. */
  readonly limit: number
  readonly window: number
  readonly remaining: number
  /** Unix time in seconds at which the window ends. */
  readonly reset: number
  /** Whole seconds until the next attempt makes sense; 0 when allowed. */
  readonly retryAfter: number
  /** The state of the shortest window, for headers. Absent: that of the fields above. */
  readonly shown?: Pick<Allowance, 'limit' | 'remaining' | 'reset'>
}

/**
 * Counts requests by `ctx.principal` (its address or id, as configured), exactly, over all workers. Without a provider,
 * requests are not limited.
 */
export interface Limits {
  /** Counts one request unless it exceeds a limit. Throws UNAVAILABLE when it cannot count. */
  take(ctx: CallContext): Promise<Allowance>
  /**
   * Whether any limit is configured; constant once the host is ready. If false, callers need not call `take` and send no limit
   * headers.
   */
  isActive(ctx: CallContext): Promise<boolean>
}
export const Limits = defineService<Limits>('limits', { api: 1, methods: { take: 'call', isActive: 'call' } })

/** An address of this machine. Port 0 means any free port. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
  /** What the clients of this address speak. Default: `http`. */
  readonly scheme?: 'http' | 'https'
}

/**
 * Listens on behalf of this process, such as a supervisor whose workers share a port. Only in process. Pass its connections to
 * an `http.Server` with `server.emit('connection', connection)`.
 */
export interface Listener {
  /**
   * Call it in a tap of `Host.hooks.ready`. Resolves to the port. Connections arrive from when this process is ready until it
   * drains. Throws system errors such as EADDRINUSE.
   */
  listen(address: ListenAddress, take: (connection: Socket) => void, ctx: CallContext): Promise<number>
  /** Keeps a valid certificate in memory, in place of an earlier one, for later processes with the same configuration. */
  keepCertificate?(certificate: KeptCertificate, ctx: CallContext): Promise<void>
  /** The certificate that another process with the same configuration has kept, for a process that finds its files invalid. */
  keptCertificate?(ctx: CallContext): Promise<KeptCertificate | undefined>
  /** Passes the requests of the operator of this machine to `answer`, until this process ends. */
  serveOperator?(answer: OperatorAnswers, ctx: CallContext): Promise<void>
}

/** A request that a command sends over the control socket of the server, which only the user of the server can open. */
export interface OperatorRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly accept?: string
  /** JSON. */
  readonly body?: string
}

/** A part of the answer to such a request: the head, then the pieces of the body. */
export type OperatorAnswerPart = { readonly status: number; readonly headers: Readonly<Record<string, string>> } | string

/** Answers a request as the principal of `ctx`, without a credential. */
export type OperatorAnswers = (request: OperatorRequest, ctx: CallContext) => AsyncIterable<OperatorAnswerPart>

/** A certificate and its private key, as PEM, with the files that they were read from. Never written to a file. */
export interface KeptCertificate {
  readonly files: readonly string[]
  readonly cert: Uint8Array
  readonly key: Uint8Array
}

/** Listeners for this process. Without one, a plugin listens itself. */
export const Listeners = defineSlot<Listener>('listeners', {
  api: 1,
  methods: { listen: 'call', keepCertificate: 'call', keptCertificate: 'call', serveOperator: 'call' },
  local: true,
})
