import type { GuardedFetchOptions } from './guarded-fetch.ts'

/** The keys of a configuration section that control its HTTP requests. */
export interface FetchConfig {
  allow: string[]
  ports?: number[]
  timeout_ms: number
  max_bytes: number
  max_redirects: number
  user_agent: string
}

/** The defaults of a section, and the maximum of its time limit. */
interface FetchDefaults {
  readonly timeoutMs: number
  readonly longestMs: number
  readonly maxBytes: number
}

const number = (minimum: number, maximum: number, value: number, description: string) =>
  ({ type: 'integer', minimum, maximum, default: value, description }) as const

/** JSON Schemas of the keys of `FetchConfig`, for the section of a plugin. */
export const fetchKeys = ({ timeoutMs, longestMs, maxBytes }: FetchDefaults) =>
  ({
    allow: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      default: [],
      description:
        'Addresses, networks and names that can be reached although they are not public: 10.0.0.0/8, wiki.internal, *.internal.',
    },
    ports: {
      type: 'array',
      items: { type: 'integer', minimum: 1, maximum: 65_535 },
      minItems: 1,
      description: 'The only ports that can be reached. Default: all.',
    },
    timeout_ms: number(100, longestMs, timeoutMs, 'Maximum milliseconds of one request.'),
    max_bytes: number(1024, 33_554_432, maxBytes, 'Maximum bytes of a response, decompressed.'),
    max_redirects: number(0, 20, 5, 'Maximum redirects to follow.'),
    user_agent: {
      type: 'string',
      minLength: 1,
      maxLength: 500,
      pattern: '^[ -~]+$',
      default: 'svc/0.1',
      description: 'The User-Agent header.',
    },
  }) as const

/** Overhead of a compressed response. */
const FRAME_BYTES = 65_536

/** Converts a configuration section to options of a fetch. */
export const fetchOptions = (config: FetchConfig): GuardedFetchOptions => ({
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
