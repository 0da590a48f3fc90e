import { schema } from '@svc/core'

/** The section `chat.policy`. */
export interface PolicyConfig {
  /** Tries of one model in one round, the first included. */
  attempts: number
  backoff_ms: number
  backoff_limit_ms: number
  wait_limit_ms: number
  breaker_failures: number
  breaker_open_ms: number
}

const count = (value: number, description: string, minimum: number, maximum: number) => ({
  type: 'integer',
  minimum,
  maximum,
  default: value,
  description,
})
const DAY_MS = 86_400_000

export const POLICY_CONFIG = schema<PolicyConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    attempts: count(3, 'How often a model is asked at most before another is, or the turn fails; 1: no retry', 1, 20),
    backoff_ms: count(
      250,
      'Milliseconds of the first wait; doubled with each retry, of which a random part is waited',
      0,
      DAY_MS
    ),
    backoff_limit_ms: count(4_000, 'Milliseconds to which that grows', 0, DAY_MS),
    wait_limit_ms: count(10_000, 'Milliseconds a turn waits at most for a model that says when to come again', 0, DAY_MS),
    breaker_failures: count(5, 'Failures in a row after which a model is left alone; 0: never', 0, 1_000),
    breaker_open_ms: count(30_000, 'Milliseconds for which it is left alone; then one turn may try it', 1, DAY_MS),
  },
})
