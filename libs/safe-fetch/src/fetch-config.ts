import type { GuardedFetchOptions } from './guarded-fetch.ts'

/** What a section of the configuration says of how something is fetched. */
export interface FetchConfig {
  allow: string[]
  ports?: number[]
  timeout_ms: number
  max_bytes: number
  max_redirects: number
  user_agent: string
}

/** The usual values of a section, and the longest time it may allow. */
interface FetchUsual {
  readonly timeoutMs: number
  readonly longestMs: number
  readonly maxBytes: number
}

const number = (minimum: number, maximum: number, value: number, description: string) =>
  ({ type: 'integer', minimum, maximum, default: value, description }) as const

/** JSON Schemas of the keys of `FetchConfig`, for the section of a plugin. */
export const fetchKeys = ({ timeoutMs, longestMs, maxBytes }: FetchUsual) =>
  ({
    allow: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      default: [],
      description:
        'Addresses, networks and names that may be reached though they are not public: 10.0.0.0/8, wiki.internal, *.internal.',
    },
    ports: {
      type: 'array',
      items: { type: 'integer', minimum: 1, maximum: 65_535 },
      minItems: 1,
      description: 'The only ports that may be reached; all without it.',
    },
    timeout_ms: number(100, longestMs, timeoutMs, 'Milliseconds that one request may take.'),
    max_bytes: number(1024, 33_554_432, maxBytes, 'Bytes of an answer that are read, decompressed.'),
    max_redirects: number(0, 20, 5, 'Redirects that are followed.'),
    user_agent: {
      type: 'string',
      minLength: 1,
      maxLength: 500,
      pattern: '^[ -~]+$',
      default: 'svc/0.1',
      description: 'What it calls itself.',
    },
  }) as const

/** What a compressed answer may have besides its content. */
const FRAME_BYTES = 65_536

/** The options of a fetch as a section says. */
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
