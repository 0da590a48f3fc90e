import { schema } from '@svc/core'

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
}

const texts = { type: 'array', items: { type: 'string', minLength: 1 }, default: [] }
const ms = (value: number, description: string) => ({ type: 'integer', minimum: 1, default: value, description })

export const serverConfig = schema<ServerConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    host: { type: 'string', minLength: 1, default: '127.0.0.1', description: 'Address to listen on.' },
    port: { type: 'integer', minimum: 0, maximum: 65535, default: 8080, description: 'Port to listen on; 0 takes a free one.' },
    allowed_hosts: { ...texts, description: 'Host names accepted besides loopback names and server.host.' },
    trusted_proxies: { ...texts, description: 'Addresses of proxies whose X-Forwarded-For counts.' },
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
  },
})
