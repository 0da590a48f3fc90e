import { type SvcError, svcError } from '@svc/core'
import type { ModelFailure, ModelFailureKind } from '@svc/core/contracts'

/** What each kind of failure looks like from here: as the upstreams of this world would have it. */
const FAILURES: Readonly<Record<ModelFailureKind, Omit<ModelFailure, 'kind'>>> = {
  rate_limited: { retryable: true, retryAfterMs: 100, upstreamStatus: 429 },
  overloaded: { retryable: true, retryAfterMs: 50, upstreamStatus: 503 },
  bad_request: { retryable: false, upstreamStatus: 400 },
  authentication: { retryable: false, upstreamStatus: 401 },
  context_too_long: { retryable: false, upstreamStatus: 400 },
  content_refused: { retryable: false, upstreamStatus: 400 },
  network: { retryable: true },
  timeout: { retryable: true },
}

/** Whether a word names a kind of failure. */
export const isFailureKind = (word: string): word is ModelFailureKind => Object.hasOwn(FAILURES, word)

const modelFailed = (message: string, failure: ModelFailure, hint?: string): SvcError =>
  svcError('MODEL_FAILED', message, { details: { ...failure }, ...(hint === undefined ? {} : { hint }) })

/** The failure a `/fail` directive asked for. */
export const asked = (kind: ModelFailureKind, sizes: { limit: number; count: number }): SvcError =>
  modelFailed(`the message asked for this failure: ${kind}`, {
    kind,
    ...FAILURES[kind],
    requestOnly: true,
    ...(kind === 'context_too_long' ? { limit: sizes.limit, count: Math.max(sizes.count, sizes.limit + 1) } : {}),
  })

export const contextTooLong = (model: string, limit: number, count: number): SvcError =>
  modelFailed(
    `the messages are ${count} tokens, the model ${model} takes ${limit}`,
    { kind: 'context_too_long', ...FAILURES.context_too_long, limit, count },
    'shorten the message, or take a model with a longer context'
  )

export const unknownModel = (model: string, known: readonly string[]): SvcError =>
  modelFailed(
    `this provider has no model "${model}"`,
    { kind: 'bad_request', retryable: false, upstreamStatus: 404 },
    `its models are ${known.join(', ')}`
  )
