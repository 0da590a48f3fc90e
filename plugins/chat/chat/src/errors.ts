import { type SvcError, svcError } from '@svc/core'
import type { PublicError, ModelRef } from '@svc/core/contracts'

const clip = (text: string) => (text.length > 100 ? `${text.slice(0, 100)}…` : text)

export const invalid = (field: string, reason: string, more: Record<string, unknown> = {}) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason, ...more } })

export const toolUnknown = (tool: string, allowed: readonly string[]) =>
  svcError('INVALID_VALUE', `there is no tool "${clip(tool)}"`, {
    details: { field: 'tools', value: clip(tool), allowed, reason: 'unknown tool' },
    hint:
      allowed.length > 0
        ? `Use a known tool: ${allowed.slice(0, 20).join(', ')}`
        : 'Switch to another mode: this mode allows no tools',
  })

export const toolForbidden = (tool: string, mode: string, allowed: readonly string[]) =>
  svcError('INVALID_VALUE', `the mode "${mode}" does not allow the tool "${tool}"`, {
    details: { field: 'tools', value: tool, allowed, reason: `not allowed in mode ${mode}` },
    hint: 'Omit the tool, or switch to another mode',
  })

export const toolMissing = (tool: string) => svcError('TOOL_NOT_FOUND', `there is no tool "${clip(tool)}"`)

/** A plugin, a person or a missing reader denies a call outside of a turn. */
export const callDenied = (tool: string, reason: string) =>
  svcError('FORBIDDEN', `the call of the tool "${clip(tool)}" is not allowed: ${reason.slice(0, 1_000)}`, {
    details: { tool: clip(tool), reason: reason.slice(0, 1_000) },
  })

export const toolLate = (tool: string, limitMs: number) =>
  svcError('TIMEOUT', `the tool "${clip(tool)}" did not finish within ${limitMs / 1000} s`, {
    details: { tool: clip(tool), timeout_ms: limitMs },
  })

/** The text is the same for an unknown question and for a question of another principal. */
export const questionUnknown = ({ requestId, callId }: { requestId: string; callId: string }) =>
  svcError('QUESTION_UNKNOWN', 'no open question has this request id and call id', {
    details: { requestId: clip(requestId), callId: clip(callId) },
  })

/** The text is the same for an unknown turn and for a turn of another principal. */
export function turnUnknown(turnId: string) {
  const hint =
    'Read the conversation: it contains the turn if the turn has ended. If not, answer the open question of the turn, or send the message again'
  return svcError('TURN_UNKNOWN', `there is no open turn "${clip(turnId)}"`, { details: { turnId: clip(turnId), hint }, hint })
}

export const tooManyUnread = (limit: number) =>
  svcError('UNAVAILABLE', `${limit} turns already continue without a reader, which is the limit`, {
    details: { limit },
    hint: 'Read or cancel turns, then answer again',
  })

export const turnEventsLost = (after: number, first: number) =>
  svcError(
    'TURN_EVENTS_LOST',
    `svc no longer keeps the events after number ${after}; the first event that it keeps is number ${first}`,
    {
      details: { after, first },
      hint: 'Wait until the turn ends, then read the conversation',
    }
  )

export const afterInvalid = (after: number, last: number) => {
  const reason = `the position (Last-Event-ID or after) must be from 0 to ${last}, the number of the last event`
  return svcError('INVALID_VALUE', reason, { details: { field: 'after', value: after, reason } })
}

/** The reason with which a turn is cancelled. */
export const turnCancelled = (why: string) => new DOMException(why, 'AbortError')

export function answerInvalid({ provider, model }: ModelRef, reason: string) {
  const hint = 'Simplify the response schema, or use another model'
  const details = { provider, model, reason, hint }
  return svcError('ANSWER_INVALID', `the model ${model} returned two replies that do not match the schema: ${reason}`, {
    details,
    hint,
  })
}

/** The turn reached its own limit, outside of a model call. */
export const turnTimeout = (provider: string, ms: number) =>
  svcError('MODEL_FAILED', `the turn did not end within ${ms} ms`, {
    details: { kind: 'timeout', retryable: true, requestOnly: true, provider },
  })

/** The error for events. An error without a code of svc becomes INTERNAL_ERROR; its message goes only to the log. */
export function toPublicError(error: unknown): PublicError {
  const { name, code = '', message = '', details = {} } = error as Partial<SvcError>
  return name === 'SvcError' ? { code, message, details } : { code: 'INTERNAL_ERROR', message: 'internal error', details: {} }
}
