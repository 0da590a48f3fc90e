import { codeOf, messageOf } from '@svc/core'
import type { ErrorRecord, PublicError } from '@svc/core/contracts'

/** The error codes of the API and their meanings. */
export const API_CODES = {
  MISSING_FIELD: 'a required field is missing',
  INVALID_VALUE: 'a field has an invalid value; 404 if it names something that does not exist',
  CONFLICT: 'the state is not the one that the request expects; read it again',
  CURSOR_INVALID: 'the position is not one of this server',
  AUTHENTICATION_FAILED: 'the credential is missing or invalid',
  FORBIDDEN: 'the scope, the Host or the Origin does not allow it',
  NOT_FOUND: 'there is no such route',
  MODEL_NOT_FOUND: 'the provider has no such model',
  TOOL_NOT_FOUND: 'there is no such tool',
  METHOD_NOT_ALLOWED: 'the route does not support this method',
  PRECONDITION_FAILED: 'it was changed since it was read: If-Match names another version',
  PAYLOAD_TOO_LARGE: 'the request is too large',
  UNSUPPORTED_MEDIA_TYPE: 'the body is not JSON',
  RATE_LIMITED: 'too many requests',
  TOOL_EXECUTION_FAILED: 'a tool failed',
  INTERNAL_ERROR: 'an internal error; the log has it under the request id',
  PROVIDER_NOT_FOUND: 'there is no such provider',
  PROVIDER_ERROR: 'the provider failed',
  UNAVAILABLE: 'try again later',
  TIMEOUT: 'a tool call took too long',
} as const satisfies Readonly<Record<string, string>>
export type ApiCode = keyof typeof API_CODES

/** An error as the API returns it. No other form leaves the process. The HTTP server adds the status. */
export interface Explained {
  readonly record: ErrorRecord & { readonly error_code: ApiCode }
  /** Seconds after which to try again. */
  readonly retryAfter?: number
  /** True for an internal error, which the server must log. */
  readonly internal?: boolean
}

type Details = Readonly<Record<string, unknown>>
type More = Omit<Explained, 'record'>

/** Builds an error of the API. */
export const explained = (code: ApiCode, message: string, details: Details = {}, more: More = {}): Explained => ({
  record: { success: false, error: message, error_code: code, details },
  ...more,
})

const RETRY_SECONDS = 1

/** Translates internal error codes to errors of the API. A code that is missing here becomes INTERNAL_ERROR. */
const TRANSLATED: Readonly<Record<string, (error: PublicError) => Explained>> = {
  CONVERSATION_UNKNOWN: ({ details }) => notFound('conversation_id', details.conversationId),
  RUN_INBOX_FULL: error => asItIs('INVALID_VALUE', error),
  RUN_UNKNOWN: ({ details }) => notFound('workflow_id', details.value),
  WORKFLOW_UNKNOWN: ({ details }) => notFound('workflow', details.value),
  JOB_UNKNOWN: ({ details }) => notFound('job_id', details.value),
  JOB_KIND_UNKNOWN: kindNotFound,
  JOB_STATE: ({ message, details }) => explained('INVALID_VALUE', message, { field: 'job_id', reason: message, ...details }),
  JOB_QUEUE_FULL: unavailable,
  JOB_TOO_LARGE: ({ message, details }) => explained('PAYLOAD_TOO_LARGE', message, details),
  SCHEDULE_UNKNOWN: ({ details }) => notFound('schedule', details.value, details.hint),
  SCHEDULE_EXISTS: ({ message, details }) => explained('INVALID_VALUE', message, { field: 'name', reason: message, ...details }),
  SCHEDULE_INVALID: error => asItIs('INVALID_VALUE', error),
  SCHEDULE_FIXED: error => asItIs('INVALID_VALUE', error),
  SECRET_UNKNOWN: ({ details }) => notFound('secret', details.name),
  SECRET_INVALID: ({ message, details }) => explained('INVALID_VALUE', message, { field: details.reason, reason: message }),
  SECRET_CONFIGURED: ({ message }) => explained('INVALID_VALUE', message, { field: 'secret', reason: message }),
  SECRETS_KEY_MISSING: notConfigured,
  SECRETS_KEY_INVALID: notConfigured,
  CONFIG_DRAFT_INVALID: ({ message, details }) =>
    explained('INVALID_VALUE', message, { field: 'values', reason: message, ...details }),
  CONFIG_LOCKED: ({ message, details }) => explained('INVALID_VALUE', message, { field: 'configuration', ...details }),
  TOKEN_UNKNOWN: ({ details }) => notFound('token', details.value),
  TEAM_UNKNOWN: ({ details }) => notFound('team', details.team ?? details.value),
  TEAM_RUN_UNKNOWN: ({ details }) => notFound('run', details.value),
  TEAM_INVALID: error => asItIs('INVALID_VALUE', error),
  MCP_SERVER_UNKNOWN: ({ details }) => notFound('server', details.server),
  MCP_TOOL_UNKNOWN: ({ details }) => notFound('tool', details.tool),
  MCP_CLIENT_INVALID: error => asItIs('INVALID_VALUE', error),
  MCP_CALL_FAILED: error => asItIs('PROVIDER_ERROR', error),
  LOGIN_UNKNOWN: () => notFound('login_id', undefined),
  OAUTH_FAILED: error => asItIs('PROVIDER_ERROR', error),
  GRAPH_TOO_LARGE: error => asItIs('INVALID_VALUE', error),
  WORKFLOW_INVALID: error => asItIs('INVALID_VALUE', error),
  QUESTION_UNKNOWN: ({ details }) => notFound('call_id', details.callId),
  TURN_UNKNOWN: ({ details }) => notFound('turn_id', details.turnId, details.hint),
  TURN_EVENTS_LOST: ({ message, details }) =>
    explained('INVALID_VALUE', message, { field: 'after', reason: message, ...details }),
  CONVERSATION_FULL: ({ message, details }) =>
    explained('INVALID_VALUE', message, { field: 'conversation_id', reason: 'the conversation is full', ...details }),
  CONVERSATION_BUSY: unavailable,
  STORE_UNAVAILABLE: unavailable,
  STORE_UNSURE: unsure,
  STORE_FENCED: unavailable,
  STORE_CONFLICT: unavailable,
  LEASE_BUSY: unavailable,
  PLUGIN_GONE: unavailable,
  SCOPE_CLOSED: unavailable,
  HOST_CLOSED: unavailable,
  UNAVAILABLE: unavailable,
  MODEL_FAILED: modelFailed,
  ANSWER_INVALID: ({ message, details: { provider, reason, hint } }) =>
    explained('PROVIDER_ERROR', message, { provider, reason, retryable: false, ...(hint === undefined ? {} : { hint }) }),
  BUDGET_EXHAUSTED: ({ message, details }) =>
    explained('INVALID_VALUE', message, {
      field: details.unit === 'cost' ? 'cost_budget' : 'token_budget',
      reason: 'the budget is used up',
      ...details,
    }),
  PRICE_UNKNOWN: ({ message, details }) =>
    explained('INVALID_VALUE', message, { field: 'cost_budget', reason: 'the model has no price', ...details }),
  RATE_LIMITED: error => ({ ...asItIs('RATE_LIMITED', error), retryAfter: Number(error.details.retry_after ?? RETRY_SECONDS) }),
}

const asItIs = (code: ApiCode, { message, details }: PublicError) => explained(code, message, details)

const isCode = (code: string): code is ApiCode => Object.hasOwn(API_CODES, code)

const notFound = (field: string, value: unknown, hint?: unknown) => {
  const shown = { ...(typeof value === 'string' ? { value: value.slice(0, 200) } : {}), ...(hint === undefined ? {} : { hint }) }
  return explained('INVALID_VALUE', `${field} not found`, { field, ...shown, reason: 'not found' })
}

function kindNotFound({ details: { value, known, nearest } }: PublicError): Explained {
  const { record } = notFound('kind', value)
  const advice = typeof nearest === 'string' ? `: did you mean "${nearest}"?` : ''
  const similar = typeof nearest === 'string' ? { nearest } : {}
  return explained('INVALID_VALUE', `${record.error}${advice}`, { ...record.details, ...similar, allowed: known })
}

const UNAVAILABLE_REASONS: Readonly<Record<string, string>> = {
  CONVERSATION_BUSY: 'the conversation is busy with another turn',
  LEASE_BUSY: 'another request has it',
  STORE_FENCED: 'another worker has taken over',
  STORE_CONFLICT: 'something else changed it meanwhile',
  STORE_UNAVAILABLE: 'the store cannot be reached',
  JOB_QUEUE_FULL: 'too many jobs are queued',
  PLUGIN_GONE: 'a part of the server is being restarted',
}

function unavailable({ code, message, details }: PublicError): Explained {
  const reason = code === 'UNAVAILABLE' ? message : (UNAVAILABLE_REASONS[code] ?? 'the server is stopping')
  if (details.retryable === false) return explained('UNAVAILABLE', reason, { reason, retryable: false })
  const retryAfter = typeof details.retryAfterMs === 'number' ? Math.ceil(details.retryAfterMs / 1000) : RETRY_SECONDS
  return explained('UNAVAILABLE', reason, { reason, retry_after: retryAfter }, { retryAfter })
}

/** The operator must change the configuration of the server first. The message can name files, so only the log has it. */
function notConfigured({ code }: PublicError): Explained {
  const reason =
    code === 'SECRETS_KEY_MISSING'
      ? 'the server has no key that encrypts secrets: set secrets.key_file or SVC_SECRETS_KEY, see the guide "Keep a secret"'
      : 'the key of the secrets is not valid: correct secrets.key_file or SVC_SECRETS_KEY, see the guide "Keep a secret"'
  return explained('UNAVAILABLE', reason, { reason, retryable: false })
}

/** Without the advice to try again: the request may have been done. */
function unsure(): Explained {
  const reason = 'it is unknown whether the request was done: read the present state before you repeat it'
  return explained('UNAVAILABLE', reason, { reason, retryable: false })
}

function modelFailed({ message, details }: PublicError): Explained {
  const { kind, provider, upstreamStatus, retryable, retryAfterMs, limit, count } = details
  if (kind === 'context_too_long')
    return explained('INVALID_VALUE', message, { field: 'message', reason: 'the context is too long', limit, count })
  const upstream = upstreamStatus === undefined ? {} : { upstream_status: upstreamStatus }
  const again = Number.isFinite(retryAfterMs) ? { retryAfter: Math.max(1, Math.ceil(Number(retryAfterMs) / 1000)) } : {}
  return explained('PROVIDER_ERROR', message, { provider, ...upstream, retryable: retryable === true }, again)
}

const internal = (requestId: string) =>
  explained(
    'INTERNAL_ERROR',
    'an internal error; the log has it under the request id',
    { request_id: requestId },
    { internal: true }
  )

/** Translates the error of a service into an error record of the API. */
export function explain(error: PublicError, requestId: string): Explained {
  const translate = Object.hasOwn(TRANSLATED, error.code) ? TRANSLATED[error.code] : undefined
  if (translate) return translate(error)
  return isCode(error.code) && error.code !== 'INTERNAL_ERROR' ? asItIs(error.code, error) : internal(requestId)
}

/** Converts any thrown value to a `PublicError`. A value without a code becomes INTERNAL_ERROR. */
export function toPublicError(error: unknown): PublicError {
  const { details = {}, message } = (error ?? {}) as Partial<PublicError>
  // an event of another service has an error as plain data
  return { code: codeOf(error) ?? 'INTERNAL_ERROR', message: typeof message === 'string' ? message : messageOf(error), details }
}
