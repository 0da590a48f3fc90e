import { type SvcError, svcError } from '@svc/core'
import type { ModelFailure, ModelFailureKind } from '@svc/core/contracts'

/** The failure of each kind, as real upstreams report it. */
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

/** True if a word names a kind of failure. */
export const isFailureKind = (word: string): word is ModelFailureKind => Object.hasOwn(FAILURES, word)

const modelFailed = (message: string, failure: ModelFailure, hint?: string): SvcError =>
  svcError('MODEL_FAILED', message, { details: { ...failure }, ...(hint === undefined ? {} : { hint }) })

/** The failure that a `/fail` directive requests. */
export const requestedFailure = (kind: ModelFailureKind, sizes: { limit: number; count: number }): SvcError =>
  modelFailed(`the message requested this failure: ${kind}`, {
    kind,
    ...FAILURES[kind],
    requestOnly: true,
    ...(kind === 'context_too_long' ? { limit: sizes.limit, count: Math.max(sizes.count, sizes.limit + 1) } : {}),
  })

export const contextTooLong = (model: string, limit: number, count: number): SvcError =>
  modelFailed(
    `the messages have ${count} tokens; the model ${model} accepts ${limit}`,
    { kind: 'context_too_long', ...FAILURES.context_too_long, limit, count },
    'Shorten the message, or use a model with a longer context'
  )

export const unknownModel = (model: string, models: readonly string[]): SvcError =>
  modelFailed(
    `this provider has no model "${model}"`,
    { kind: 'bad_request', retryable: false, upstreamStatus: 404 },
    `Use one of its models: ${models.join(', ')}`
  )

export const noSample = (): SvcError =>
  modelFailed(
    'the local provider found no value for the JSON Schema of the request',
    { kind: 'bad_request', retryable: false, upstreamStatus: 400, requestOnly: true },
    'Use a simpler schema, or a real model'
  )

export const wrongInput = (message: string): SvcError =>
  modelFailed(message, { kind: 'bad_request', retryable: false, upstreamStatus: 400, requestOnly: true })
