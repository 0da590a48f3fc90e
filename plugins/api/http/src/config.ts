import { schema } from '@svc/core'

/** TLS: both files, or none. */
export interface SslConfig {
  enabled: boolean
  cert?: string
  key?: string
  handshake_timeout_ms: number
}

/** Whose pages may use the server. */
export interface CorsConfig {
  enabled: boolean
  /** Absent: the origins of this machine where authentication is off, else none. */
  origins?: string[]
  methods: string[]
  headers: string[]
  credentials: boolean
  /** Seconds that a browser may keep the answer to a preflight. */
  max_age: number
}

/** The section `server`, as far as this plugin owns it. Names as in the configuration file. */
export interface ServerConfig {
  host: string
  port: number
  /** Host names accepted besides loopback and `host`. */
  allowed_hosts: string[]
  /** Addresses whose `X-Forwarded-For` counts. */
  trusted_proxies: string[]
  /** Seconds that running requests have when the server stops. */
  shutdown_timeout: number
  /** Bytes of a request body. */
  body_limit: number
  heartbeat_ms: number
  stall_timeout_ms: number
  headers_timeout_ms: number
  request_timeout_ms: number
  keep_alive_ms: number
  /** Bytes of a request's headers. */
  header_limit: number
  max_connections: number
  max_requests_per_principal: number
  max_streams_per_principal: number
  max_requests_per_second: number
  ssl: SslConfig
  cors: CorsConfig
  auth: { enabled: boolean; timeout_ms: number }
}

const texts = { type: 'array', items: { type: 'string', minLength: 1 }, default: [] }
const words = (value: string[], description: string) => ({ ...texts, default: value, description })
const count = (minimum: number, value: number, description: string) => ({ type: 'integer', minimum, default: value, description })
const flag = (value: boolean, description: string) => ({ type: 'boolean', default: value, description })
const file = (description: string) => ({ type: 'string', minLength: 1, description })
const closed = (properties: Readonly<Record<string, object>>) => ({
  type: 'object',
  default: {},
  additionalProperties: false,
  properties,
})
const ORIGIN = '^(\\*|null|[a-z][a-z0-9+.-]*://[^/?#@\\s]+)$'
const ms = (value: number, description: string) => ({ type: 'integer', minimum: 1, default: value, description })

export const serverConfig = schema<ServerConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    host: { type: 'string', minLength: 1, default: '127.0.0.1', description: 'Address to listen on.' },
    port: { type: 'integer', minimum: 0, maximum: 65535, default: 8080, description: 'Port to listen on; 0 takes a free one.' },
    allowed_hosts: { ...texts, description: 'Host names accepted besides loopback names and server.host.' },
    trusted_proxies: {
      ...texts,
      description: 'Addresses and networks (10.0.0.0/8) of proxies whose X-Forwarded-For and X-Forwarded-Proto count.',
    },
    shutdown_timeout: {
      type: 'number',
      minimum: 0,
      default: 30,
      description: 'Seconds that running requests have when the server stops.',
    },
    body_limit: { type: 'integer', minimum: 1, default: 1_048_576, description: 'Largest request body in bytes.' },
    heartbeat_ms: ms(15_000, 'Milliseconds between the heartbeat comments of an event stream.'),
    stall_timeout_ms: ms(60_000, 'Milliseconds after which a reader that takes nothing is cut off.'),
    headers_timeout_ms: ms(20_000, 'Milliseconds within which the headers of a request must have come.'),
    request_timeout_ms: ms(60_000, 'Milliseconds within which a whole request, body included, must have come.'),
    keep_alive_ms: ms(5_000, 'Milliseconds that an idle connection is kept open.'),
    header_limit: count(1024, 16_384, 'Largest request line and headers in bytes.'),
    max_connections: count(1, 10_000, 'Open connections of a worker; further ones are closed at once.'),
    max_requests_per_principal: count(
      1,
      1_024,
      'Requests that one principal has open at a time (without a name: one address), in all workers together.'
    ),
    max_streams_per_principal: count(1, 256, 'Streams among them.'),
    max_requests_per_second: count(
      0,
      1_000,
      'Requests a second and address that a worker lets come as far as authentication; 0 for any number, as from loopback.'
    ),
    ssl: closed({
      enabled: flag(false, 'Serve TLS.'),
      cert: file('Certificate file (PEM, with what it hangs from). A changed file is taken up without restart.'),
      key: file("The certificate's key file (PEM, not encrypted)."),
      handshake_timeout_ms: ms(10_000, 'Milliseconds within which a TLS handshake must be done.'),
    }),
    cors: closed({
      enabled: flag(true, 'Whether pages of other origins may use the server.'),
      origins: {
        type: 'array',
        items: {
          type: 'string',
          pattern: ORIGIN,
          patternHint: 'must be an origin like https://app.example.com, without a path, or *',
        },
        description:
          'Origins whose pages may use the server, * for all. Default: the origins of this machine (http://localhost:5173); none while authentication is on.',
      },
      methods: words(['GET', 'POST', 'PUT', 'DELETE'], 'Methods that they may use.'),
      headers: words(
        [
          'Authorization',
          'Content-Type',
          'X-API-Key',
          'X-Request-Id',
          'Prefer',
          'Idempotency-Key',
          'Last-Event-ID',
          'traceparent',
          'tracestate',
          'Mcp-Session-Id',
          'Mcp-Protocol-Version',
          'Mcp-Method',
          'Mcp-Name',
        ],
        'Request headers that they may send.'
      ),
      credentials: flag(false, 'Whether they may send cookies and the like.'),
      max_age: count(0, 600, 'Seconds that a browser keeps the answer to a preflight.'),
    }),
    auth: closed({
      enabled: flag(false, 'Whether a credential is needed. The plugins that know credentials have keys of their own below.'),
      timeout_ms: ms(
        10_000,
        'Milliseconds that the plugins which know credentials have, all together, to say who asks; then 503.'
      ),
    }),
  },
})
