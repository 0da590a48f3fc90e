import type { ModelAnswer, ModelRef } from '@svc/core/contracts'

/** The failure of a turn whose model has an open breaker and no fallback. */
export const refusal = ({ provider, model }: ModelRef, waitMs: number): ModelAnswer => ({
  failure: { kind: 'overloaded', retryable: true, retryAfterMs: Math.max(1, Math.ceil(waitMs)) },
  message: `the model ${model} of provider "${provider}" has failed too often and is left alone for a while`,
})
