import { codeOf, type SvcError, svcError } from '@svc/core'
import type { ModelFailure, PublicError } from '@svc/core/contracts'

/** A field of the request that cannot be used as it is. */
export const invalid = (field: string, reason: string, more: Record<string, unknown> = {}) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason, ...more } })

export const noEmbeddings = (model: string) =>
  invalid('model', `cannot be ${model}: the model makes no embeddings`, { value: model, unsupported: true })

/** A failed model call, with the provider in its details. */
export function modelFailed(provider: string, failure: ModelFailure, message: string, cause?: unknown): SvcError {
  return svcError('MODEL_FAILED', message, { details: { ...failure, provider }, cause })
}

/** Reads the failure from an error of a provider. An error other than MODEL_FAILED counts as a network failure. */
export function failureOf(error: unknown): ModelFailure {
  const details = (error as { details?: Partial<ModelFailure> })?.details
  if (codeOf(error) === 'MODEL_FAILED' && details?.kind) return { retryable: false, ...details, kind: details.kind }
  return { kind: 'network', retryable: false }
}

export const modelSilent = (provider: string, ms: number, first: boolean) =>
  modelFailed(
    provider,
    { kind: 'timeout', retryable: true },
    `provider "${provider}" ${first ? 'did not begin its answer' : 'sent no events'} for ${ms} ms`
  )

export const modelsLate = (provider: string, ms: number) =>
  modelFailed(provider, { kind: 'timeout', retryable: true }, `provider "${provider}" did not list its models within ${ms} ms`)

export function budgetExhausted(budget: number, spent: number, needed: number) {
  const hint = 'Raise the token budget, or send a shorter request'
  const message = `the turn has a budget of ${budget} tokens and has used ${spent}; its next request alone needs ${needed}`
  return svcError('BUDGET_EXHAUSTED', message, { details: { budget, spent, needed, hint }, hint })
}

export function costExhausted(budget: number, spent: number, needed: number) {
  const hint = 'Raise the budget of costs, or send a shorter request'
  const message = `the turn has a budget of ${money(budget)} and has cost ${money(spent)}; its next request alone costs ${money(needed)}`
  return svcError('BUDGET_EXHAUSTED', message, { details: { budget, spent, needed, unit: 'cost', hint }, hint })
}

const money = (amount: number) => String(Number(amount.toPrecision(6)))

export function priceUnknown(provider: string, model: string) {
  const hint = `Add "${provider}/${model}" to models.prices, with prices of 0 if it is free`
  const message = `the model "${provider}/${model}" has no price, so its call cannot be limited by a budget of costs`
  return svcError('PRICE_UNKNOWN', message, { details: { provider, model, hint }, hint })
}

/** The call reached the time limit of its turn. That counts as a failure of the model only if the model was silent for half of it. */
export const callTimeout = (provider: string, ms: number, whose: 'turn' | 'model' = 'turn') =>
  modelFailed(
    provider,
    { kind: 'timeout', retryable: true, ...(whose === 'turn' ? { requestOnly: true } : {}) },
    `the turn did not end within ${ms} ms`
  )

export const answerTooLong = (provider: string, limit: number) =>
  modelFailed(
    provider,
    { kind: 'bad_request', retryable: false },
    `the answer of provider "${provider}" has more than ${limit} characters`
  )

export const probeLate = (provider: string, ms: number) =>
  modelFailed(provider, { kind: 'timeout', retryable: true }, `no answer within ${ms} ms`)

export const modelBroke = (provider: string, what: string) =>
  modelFailed(provider, { kind: 'network', retryable: true }, `provider "${provider}" ${what}`)

/** The taps of `modelCall` keep switching the turn between models. */
export const tooManySwitches = (provider: string) => modelBroke(provider, 'was replaced too many times by plugins')

/** The provider cannot serve this request; another provider can. */
export const unfit = (provider: string, message: string) =>
  modelFailed(provider, { kind: 'bad_request', retryable: false }, message)

export const contextTooLong = ({ provider, model }: { provider: string; model: string }, limit: number, count: number) =>
  modelFailed(
    provider,
    { kind: 'context_too_long', retryable: false, limit, count },
    `the messages have ${count} tokens; the limit of the model ${model} is ${limit}`
  )

/** The error for events. An error without a code of svc becomes INTERNAL_ERROR; its message goes only to the log. */
export function toPublicError(error: unknown): PublicError {
  const { name, code = '', message = '', details = {} } = error as Partial<SvcError>
  return name === 'SvcError' ? { code, message, details } : { code: 'INTERNAL_ERROR', message: 'internal error', details: {} }
}
