import { codeOf, type SvcError, svcError } from '@svc/core'
import type { PublicError, ModelFailure, ModelRef } from '@svc/core/contracts'

const clip = (text: string) => (text.length > 100 ? `${text.slice(0, 100)}…` : text)

export const invalid = (field: string, reason: string, more: Record<string, unknown> = {}) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason, ...more } })

export const toolUnknown = (tool: string, allowed: readonly string[]) =>
  svcError('INVALID_VALUE', `there is no tool "${clip(tool)}"`, {
    details: { field: 'tools', value: clip(tool), allowed, reason: 'unknown tool' },
    hint: allowed.length > 0 ? `known: ${allowed.slice(0, 20).join(', ')}` : 'this mode allows no tool',
  })

export const toolForbidden = (tool: string, mode: string, allowed: readonly string[]) =>
  svcError('INVALID_VALUE', `the mode "${mode}" does not allow the tool "${tool}"`, {
    details: { field: 'tools', value: tool, allowed, reason: `not allowed in mode ${mode}` },
    hint: 'leave it out, or switch the mode',
  })

/** The same text for an unknown question and for one of another principal. */
export const questionUnknown = ({ requestId, callId }: { requestId: string; callId: string }) =>
  svcError('QUESTION_UNKNOWN', 'there is no such question', { details: { requestId: clip(requestId), callId: clip(callId) } })

/** A model call that failed, with the provider's name in its facts. */
export function modelFailed(provider: string, failure: ModelFailure, message: string, cause?: unknown): SvcError {
  return svcError('MODEL_FAILED', message, { details: { ...failure, provider }, cause })
}

/** What a provider threw, as a failure: its own word, or a fault of the provider. */
export function failureOf(error: unknown): ModelFailure {
  const details = (error as { details?: Partial<ModelFailure> })?.details
  if (codeOf(error) === 'MODEL_FAILED' && details?.kind) return { retryable: false, ...details, kind: details.kind }
  return { kind: 'network', retryable: false }
}

export const modelSilent = (provider: string, ms: number, first: boolean) =>
  modelFailed(
    provider,
    { kind: 'timeout', retryable: true },
    `provider "${provider}" ${first ? 'did not begin its answer' : 'fell silent'} for ${ms} ms`
  )

export const modelsLate = (provider: string, ms: number) =>
  modelFailed(provider, { kind: 'timeout', retryable: true }, `provider "${provider}" did not tell its models for ${ms} ms`)

export const budgetExhausted = (budget: number, spent: number, needed: number) =>
  svcError(
    'BUDGET_EXHAUSTED',
    `the turn may take ${budget} tokens, has taken ${spent}, and its next round needs ${needed} before any answer`,
    {
      details: { budget, spent, needed },
      hint: 'grant it more tokens, or ask for less',
    }
  )

export const answerInvalid = ({ provider, model }: ModelRef, reason: string) =>
  svcError('ANSWER_INVALID', `the model ${model} returned a reply of the wrong form twice: ${reason}`, {
    details: { provider, model, reason },
    hint: 'ask for a simpler form, or another model',
  })

/** The limit is the turn's own: it says nothing of how the model is, unless that was silent for most of it. */
export const turnTimeout = (provider: string, ms: number, whose: 'turn' | 'model' = 'turn') =>
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

/** What cannot be asked for this: another one may. */
export const unfit = (provider: string, message: string) =>
  modelFailed(provider, { kind: 'bad_request', retryable: false }, message)

export const contextTooLong = ({ provider, model }: ModelRef, limit: number, count: number) =>
  modelFailed(
    provider,
    { kind: 'context_too_long', retryable: false, limit, count },
    `the messages are ${count} tokens, the model ${model} takes ${limit}`
  )

/** An error as events tell it; what has no code of ours is an internal one and keeps its words to the log. */
export function toPublicError(error: unknown): PublicError {
  const { name, code = '', message = '', details = {} } = error as Partial<SvcError>
  return name === 'SvcError' ? { code, message, details } : { code: 'INTERNAL_ERROR', message: 'internal error', details: {} }
}
