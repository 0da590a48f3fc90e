import { schema } from '@svc/core'
import { fetchKeys, type GuardedFetchOptions } from '@svc/safe-fetch'

export interface WebhooksConfig {
  allow: string[]
  timeout_ms: number
  retry_delays_s: number[]
}

const { allow, timeout_ms } = fetchKeys({ timeoutMs: 15_000, longestMs: 60_000, maxBytes: 1024 })
/** The answer of a receiver is not used: only its beginning is read. */
const ANSWER_BYTES = 16_384
/** The delays of Standard Webhooks: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h. */
const DELAYS_S = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]

export const WEBHOOKS_CONFIG = schema<WebhooksConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    allow,
    timeout_ms: { ...timeout_ms, description: 'Maximum milliseconds of one delivery.' },
    retry_delays_s: {
      type: 'array',
      items: { type: 'integer', minimum: 0, maximum: 604_800 },
      maxItems: 99,
      default: DELAYS_S,
      description: 'Seconds before each retry of a failed delivery. After the last retry, the delivery is a dead letter.',
    },
  },
})

/** The options of the requests to receivers. */
export const fetchOptions = ({ allow: reachable, timeout_ms: totalMs }: WebhooksConfig): GuardedFetchOptions => ({
  allow: reachable,
  userAgent: 'svc-webhooks/0.1',
  // a redirect could lead to an address that the operator has not named
  limits: { totalMs, bodyBytes: ANSWER_BYTES, wireBytes: ANSWER_BYTES, redirects: 0 },
})
