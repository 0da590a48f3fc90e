import { schema } from '@svc/core'

/** TLS: both files, or none. */
export interface SslConfig {
  enabled: boolean
  cert?: string
  key?: string
  handshake_timeout_ms: number
}

/** The origins whose web pages can use the server. */
export interface CorsConfig {
  enabled: boolean
  /** Default: the origins of this machine while authentication is off, otherwise none. */
  origins?: string[]
  methods: string[]
  headers: string[]
  credentials: boolean
  /** Seconds that a browser caches the answer to a preflight. */
  max_age: number
}

/** The keys of the section `server` that this plugin owns, named as in the configuration file. */
export interface ServerConfig {
  host: string
  port: number
  /** Host names accepted besides loopback and `host`. */
  allowed_hosts: string[]
  /** Addresses whose `X-Forwarded-For` the server trusts. */
  trusted_proxies: string[]
  /** Seconds that the server waits for running requests when it stops. */
  shutdown_delay: number
  shutdown_timeout: number
  /** Maximum bytes of a request body. */
  body_limit: number
  /** Memory of all request bodies of a worker. Default: a third of the heap limit. */
  body_memory?: number
  heartbeat_ms: number
  stall_timeout_ms: number
  headers_timeout_ms: number
  request_timeout_ms: number
  keep_alive_ms: number
  /** Maximum bytes of the request line and headers. */
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
/** Shorter times would close the server to its clients, and so to the request that corrects them. */
const SHORTEST_MS = 100
const ms = (value: number, description: string, minimum = SHORTEST_MS) => ({
  type: 'integer',
  minimum,
  default: value,
  description,
})
/** Smaller limits would refuse requests of the API itself. */
const [LEAST_BODY, LEAST_HEADERS] = [16_384, 4_096]

export const serverConfig = schema<ServerConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    host: { type: 'string', minLength: 1, default: '127.0.0.1', description: 'Address to listen on.' },
    port: { type: 'integer', minimum: 0, maximum: 65535, default: 8080, description: 'Port to listen on; 0 picks a free port.' },
    allowed_hosts: { ...texts, description: 'Host names accepted besides loopback names and server.host.' },
    trusted_proxies: {
      ...texts,
      description:
        'Addresses and networks (10.0.0.0/8) of proxies whose X-Forwarded-For and X-Forwarded-Proto the server trusts.',
    },
    shutdown_delay: {
      type: 'number',
      minimum: 0,
      maximum: 600,
      default: 0,
      description:
        'Seconds that the server goes on serving after SIGTERM, while `/health/ready` is 503 so that balancers send requests elsewhere.',
    },
    shutdown_timeout: {
      type: 'number',
      minimum: 0,
      default: 30,
      description: 'Seconds that the server waits for running requests when it stops.',
    },
    body_limit: count(LEAST_BODY, 1_048_576, 'Maximum bytes of a request body.'),
    body_memory: {
      type: 'integer',
      minimum: 65_536,
      description:
        'Maximum bytes of memory that the bodies of all open requests of a worker take, estimated from their size and content; further large bodies get 503. Default: a third of the heap limit.',
    },
    heartbeat_ms: ms(15_000, 'Milliseconds between the heartbeat comments of an event stream.', 10),
    stall_timeout_ms: ms(60_000, 'Milliseconds after which the server disconnects a client that reads nothing.'),
    headers_timeout_ms: ms(20_000, 'Milliseconds in which the headers of a request must arrive.'),
    request_timeout_ms: ms(60_000, 'Milliseconds in which a whole request, including its body, must arrive.'),
    keep_alive_ms: ms(5_000, 'Milliseconds that the server keeps an idle connection open.'),
    header_limit: count(LEAST_HEADERS, 16_384, 'Maximum bytes of the request line and headers.'),
    max_connections: count(1, 10_000, 'Maximum open connections of a worker; the worker closes further connections at once.'),
    max_requests_per_principal: count(
      1,
      1_024,
      'Maximum open requests of one principal, across all workers. Anonymous requests count by address.'
    ),
    max_streams_per_principal: count(1, 256, 'Maximum open streams of one principal, across all workers.'),
    max_requests_per_second: count(
      0,
      1_000,
      'Maximum requests per second that a worker accepts from one address before authentication. 0 disables the limit; loopback addresses have no limit.'
    ),
    ssl: closed({
      enabled: flag(false, 'Serve TLS.'),
      cert: file(
        'Certificate file (PEM, including intermediate certificates). The server reloads a changed file without a restart.'
      ),
      key: file('Private key file of the certificate (PEM, not encrypted).'),
      handshake_timeout_ms: ms(10_000, 'Milliseconds in which a TLS handshake must complete.'),
    }),
    cors: closed({
      enabled: flag(true, 'Let web pages of other origins use the server.'),
      origins: {
        type: 'array',
        items: {
          type: 'string',
          pattern: ORIGIN,
          patternHint: 'must be an origin like https://app.example.com, without a path, or *',
        },
        description:
          'Origins whose web pages can use the server, * for all. Default: the origins of this machine (http://localhost:5173); none while authentication is on.',
      },
      methods: words(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], 'Methods that web pages of other origins can use.'),
      headers: words(
        [
          'Authorization',
          'Content-Type',
          'X-API-Key',
          'X-Goog-Api-Key',
          'Anthropic-Version',
          'Anthropic-Beta',
          'X-Request-Id',
          'Prefer',
          'Idempotency-Key',
          'If-Match',
          'If-None-Match',
          'Last-Event-ID',
          'traceparent',
          'tracestate',
          'Mcp-Session-Id',
          'Mcp-Protocol-Version',
          'Mcp-Method',
          'Mcp-Name',
        ],
        'Request headers that web pages of other origins can send.'
      ),
      credentials: flag(false, 'Let web pages of other origins send cookies and other browser credentials.'),
      max_age: count(0, 600, 'Seconds that a browser caches the answer to a preflight.'),
    }),
    auth: closed({
      enabled: flag(false, 'Require a credential. Each authentication plugin adds its own keys to this section.'),
      timeout_ms: ms(
        10_000,
        'Milliseconds that all authentication plugins together have to check a credential; after that the server answers 503.'
      ),
    }),
  },
})
