import { schema } from '@svc/core'
import type { GuardedFetchOptions } from '@svc/guarded-fetch'
import { DURATION_PATTERN, durationMs } from '@svc/workflow'
import { invalid } from './errors.ts'

/** The section `workflow_nodes.http`. */
export interface HttpConfig {
  allow: string[]
  ports?: number[]
  timeout_ms: number
  max_bytes: number
  max_redirects: number
  user_agent: string
}

const number = (minimum: number, maximum: number, value: number, description: string) =>
  ({ type: 'integer', minimum, maximum, default: value, description }) as const

export const HTTP_CONFIG = schema<HttpConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    allow: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      default: [],
      description:
        'Addresses, networks and names that http nodes may reach though they are not public: 10.0.0.0/8, wiki.internal, *.internal',
    },
    ports: {
      type: 'array',
      items: { type: 'integer', minimum: 1, maximum: 65_535 },
      minItems: 1,
      description: 'The only ports that http nodes may reach; all without it',
    },
    timeout_ms: number(100, 3_600_000, 60_000, 'Milliseconds that one request may take'),
    max_bytes: number(1_024, 33_554_432, 4_194_304, 'Bytes of a response that may be read, decompressed'),
    max_redirects: number(0, 20, 5, 'Redirects that are followed'),
    user_agent: {
      type: 'string',
      minLength: 1,
      maxLength: 500,
      pattern: '^[ -~]+$',
      default: 'svc/0.1',
      description: 'What http nodes call themselves',
    },
  },
})

/** What a compressed response may have besides its content. */
const FRAME_BYTES = 65_536

export const fetchOptions = (config: HttpConfig): GuardedFetchOptions => ({
  allow: config.allow,
  ...(config.ports && { ports: config.ports }),
  userAgent: config.user_agent,
  limits: {
    totalMs: config.timeout_ms,
    headersMs: config.timeout_ms,
    idleMs: config.timeout_ms,
    wireBytes: config.max_bytes + FRAME_BYTES,
    bodyBytes: config.max_bytes,
    redirects: config.max_redirects,
  },
})

/** A setting that is a length of time. */
export const duration = (description: string) =>
  ({
    type: 'string',
    pattern: DURATION_PATTERN,
    patternHint: 'must be a length of time such as 30s, 5m, 2h, 7d',
    description,
  }) as const

/** When a length of time will be over, in Unix milliseconds. Throws INVALID_VALUE. */
export function endOf(field: string, length: string): number {
  const ms = durationMs(length)
  if (ms === undefined) throw invalid(field, 'must be a length of time such as 30s, 5m, 2h, 7d', { value: length.slice(0, 100) })
  return Date.now() + ms
}
