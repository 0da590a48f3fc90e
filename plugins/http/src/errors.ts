import { messageOf, svcError } from '@svc/core'
import type { ErrorCode, ErrorRecord, ErrorTold } from '@svc/core/contracts'

type Details = Readonly<Record<string, unknown>>

/** An error as the API answers it: the only form that leaves the process. */
export interface Answer {
  readonly status: number
  readonly record: ErrorRecord
  /** Seconds for `Retry-After`. */
  readonly retryAfter?: number
  /** True for a fault of ours, which the log must explain. */
  readonly internal?: boolean
}

const CODES = {
  MISSING_FIELD: [400, 'a required field is missing'],
  INVALID_VALUE: [400, 'a field has an invalid value; 404 where it names something that does not exist'],
  AUTHENTICATION_FAILED: [401, 'the credential is missing or invalid'],
  FORBIDDEN: [403, 'the scope, the Host or the Origin does not allow it'],
  NOT_FOUND: [404, 'there is no such route'],
  MODEL_NOT_FOUND: [404, 'the provider has no such model'],
  TOOL_NOT_FOUND: [404, 'there is no such tool'],
  METHOD_NOT_ALLOWED: [405, 'the route has other methods'],
  PAYLOAD_TOO_LARGE: [413, 'the request is too large'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'the body is not JSON'],
  RATE_LIMITED: [429, 'too many requests'],
  TOOL_EXECUTION_FAILED: [500, 'a tool failed'],
  INTERNAL_ERROR: [500, 'a fault of the server; the log has it under the request id'],
  PROVIDER_NOT_FOUND: [503, 'there is no such provider'],
  PROVIDER_ERROR: [503, 'the provider failed'],
  UNAVAILABLE: [503, 'try again later'],
  TIMEOUT: [504, 'a tool call took too long'],
} as const satisfies Record<string, readonly [number, string]>
type Code = keyof typeof CODES

/** The one table from code to status, as others may read it. */
export const errorCodes: readonly ErrorCode[] = Object.entries(CODES).map(([code, [status, meaning]]) => ({
  code,
  status,
  meaning,
}))

const RETRY_SECONDS = 1

const answer = (code: Code, message: string, details: Details = {}, more: Partial<Answer> = {}): Answer => ({
  status: CODES[code][0],
  record: { success: false, error: message, error_code: code, details },
  ...more,
})

/** What only happens within, in the terms of the API. What is missing here is a fault of ours. */
const TRANSLATED: Readonly<Record<string, (told: ErrorTold) => Answer>> = {
  CONVERSATION_UNKNOWN: ({ details }) => notFound('conversation_id', details.conversationId),
  CONVERSATION_FULL: ({ message, details }) =>
    answer('INVALID_VALUE', message, { field: 'conversation_id', reason: 'the conversation is full', ...details }),
  CONVERSATION_BUSY: unavailable,
  STORE_UNAVAILABLE: unavailable,
  STORE_FENCED: unavailable,
  STORE_CONFLICT: unavailable,
  LEASE_BUSY: unavailable,
  PLUGIN_GONE: unavailable,
  SCOPE_CLOSED: unavailable,
  HOST_CLOSED: unavailable,
  UNAVAILABLE: told => unavailable(told),
  MODEL_FAILED: modelFailed,
  INVALID_VALUE: told => ({ ...asItIs('INVALID_VALUE', told), ...(told.details.reason === 'not found' ? { status: 404 } : {}) }),
  RATE_LIMITED: told => ({ ...asItIs('RATE_LIMITED', told), retryAfter: Number(told.details.retry_after ?? RETRY_SECONDS) }),
}

const asItIs = (code: Code, { message, details }: ErrorTold) => answer(code, message, details)

const isCode = (code: string): code is Code => Object.hasOwn(CODES, code)

const notFound = (field: string, value: unknown) => {
  const shown = typeof value === 'string' ? { value: value.slice(0, 200) } : {}
  return answer('INVALID_VALUE', `${field} not found`, { field, ...shown, reason: 'not found' }, { status: 404 })
}

const UNAVAILABLE_REASONS: Readonly<Record<string, string>> = {
  CONVERSATION_BUSY: 'the conversation is busy with another turn',
  LEASE_BUSY: 'another request has it',
  STORE_FENCED: 'another worker has taken over',
  STORE_CONFLICT: 'something else changed it meanwhile',
  STORE_UNAVAILABLE: 'the store cannot be reached',
  PLUGIN_GONE: 'a part of the server is being restarted',
}

function unavailable({ code, message, details }: ErrorTold): Answer {
  const reason = code === 'UNAVAILABLE' ? message : (UNAVAILABLE_REASONS[code] ?? 'the server is stopping')
  const retryAfter = typeof details.retryAfterMs === 'number' ? Math.ceil(details.retryAfterMs / 1000) : RETRY_SECONDS
  return answer('UNAVAILABLE', reason, { reason, retry_after: retryAfter }, { retryAfter })
}

function modelFailed({ message, details }: ErrorTold): Answer {
  const { kind, provider, upstreamStatus, retryable, limit, count } = details
  if (kind === 'context_too_long')
    return answer('INVALID_VALUE', message, { field: 'message', reason: 'the context is too long', limit, count })
  const upstream = upstreamStatus === undefined ? {} : { upstream_status: upstreamStatus }
  return answer('PROVIDER_ERROR', message, { provider, ...upstream, retryable: retryable === true })
}

const internal = (requestId: string) =>
  answer(
    'INTERNAL_ERROR',
    'an internal error; the log has it under the request id',
    { request_id: requestId },
    { internal: true }
  )

/** How the API answers an error that a service told. */
export function explain(told: ErrorTold, requestId: string): Answer {
  const translate = Object.hasOwn(TRANSLATED, told.code) ? TRANSLATED[told.code] : undefined
  if (translate) return translate(told)
  return isCode(told.code) && told.code !== 'INTERNAL_ERROR' ? asItIs(told.code, told) : internal(requestId)
}

/** How the API answers whatever was thrown. */
export function explainThrown(error: unknown, requestId: string): Answer {
  const { code, details } = (error ?? {}) as { code?: unknown; details?: Details }
  return typeof code === 'string'
    ? explain({ code, message: messageOf(error), details: details ?? {} }, requestId)
    : internal(requestId)
}

/** How a request that is no HTTP is answered; `code` is Node's. */
export function explainMalformed(code: string | undefined): Answer {
  if (code === 'HPE_HEADER_OVERFLOW') return answer('PAYLOAD_TOO_LARGE', 'the headers are too large', { field: 'headers' })
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return answer('INVALID_VALUE', 'the request did not come in time', { field: 'request', reason: 'too slow' })
  return answer('INVALID_VALUE', 'the request is not valid HTTP', { field: 'request', reason: 'not valid HTTP' })
}

export const missingField = (missing: readonly string[], required: readonly string[], provided: readonly string[]) =>
  svcError('MISSING_FIELD', `Missing required field${missing.length > 1 ? 's' : ''}: ${missing.join(', ')}`, {
    details: { required_fields: required, provided_fields: provided },
  })

export const invalidValue = (field: string, reason: string, more: { value?: unknown; allowed?: readonly unknown[] } = {}) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason, ...more } })

export const payloadTooLarge = (limit: number) =>
  svcError('PAYLOAD_TOO_LARGE', `the body is larger than ${limit} bytes`, { details: { limit } })

export const unsupportedMediaType = (reason: string) =>
  svcError('UNSUPPORTED_MEDIA_TYPE', `${reason}; send JSON with Content-Type: application/json`, {
    details: { reason, supported: ['application/json'] },
  })

export const routeUnknown = (method: string, path: string) =>
  svcError('NOT_FOUND', `there is no route ${method} ${path.slice(0, 200)}`)

export const methodNotAllowed = (method: string, allowed: readonly string[]) =>
  svcError('METHOD_NOT_ALLOWED', `${method} is not allowed here`, { details: { allowed } })

export const portTaken = (host: string, port: number, cause: unknown) =>
  svcError('PORT_TAKEN', `${host}:${port} is in use by another program`, {
    cause,
    details: { host, port },
    mend: 'stop that program, or choose another port: svc serve --port 9000, SVC_SERVER__PORT=9000, or server.port in svc.config',
  })

export const listenFailed = (host: string, port: number, cause: unknown) =>
  svcError('LISTEN_FAILED', `cannot listen on ${host}:${port}: ${messageOf(cause)}`, {
    cause,
    details: { host, port },
    mend: 'server.host must be an address of this machine; ports below 1024 need special rights',
  })
