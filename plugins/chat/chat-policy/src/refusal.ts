import type { ModelAnswer, ModelRef } from '@svc/core/contracts'

/** What a turn is told whose model is left alone, and no other can be asked. */
export const refusal = ({ provider, model }: ModelRef, waitMs: number): ModelAnswer => ({
  failure: { kind: 'overloaded', retryable: true, retryAfterMs: Math.max(1, Math.ceil(waitMs)) },
  message: `the model ${model} of provider "${provider}" has failed too often and is left alone for a while`,
})
