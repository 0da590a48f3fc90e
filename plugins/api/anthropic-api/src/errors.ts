import { modelFailureOf } from '@svc/api-types'
import { messageOf } from '@svc/core'
import type { ErrorRecord, FailedRequest, FormattedError, ModelFailure, ModelFailureKind, RouteReply } from '@svc/core/contracts'

/** The type of an error by the status of its response. */
const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  413: 'request_too_large',
  415: 'invalid_request_error',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

/** An error as the API writes it, with the status of its response. */
export interface WireError {
  readonly status: number
  readonly message: string
  /** Whether a client should send the same request again. Absent: the client decides. */
  readonly retry?: boolean
  readonly retryAfterMs?: number
}

/** The JSON of an error. */
const errorBody = ({ status, message }: WireError, requestId: string) => ({
  type: 'error',
  error: { type: TYPES[status] ?? 'api_error', message },
  request_id: requestId,
})

/** An error as the last event of a stream. */
export const errorEvent = (error: WireError, requestId: string): string =>
  `event: error\ndata: ${JSON.stringify(errorBody(error, requestId))}\n\n`

const SECOND = 1_000

const errorHeaders = ({ retry, retryAfterMs }: WireError, requestId: string): Record<string, string> => ({
  'request-id': requestId,
  ...(retry === undefined ? {} : { 'x-should-retry': String(retry) }),
  ...(retryAfterMs === undefined
    ? {}
    : {
        'retry-after': String(Math.max(1, Math.ceil(retryAfterMs / SECOND))),
        'retry-after-ms': String(Math.round(retryAfterMs)),
      }),
})

/** The whole response to a failed request. */
export const errorReply = (error: WireError, requestId: string): RouteReply => ({
  status: error.status,
  headers: errorHeaders(error, requestId),
  body: errorBody(error, requestId),
})

/** Statuses after which the same request can succeed. */
const PASSING: ReadonlySet<number> = new Set([429, 503, 504, 529])

/** An error record of the server as an error of this API. */
export function recordError(record: ErrorRecord, status: number, retryAfter?: number): WireError {
  const isPassing = PASSING.has(status)
  const retry = isPassing ? record.details.retryable !== false : status < 500 ? false : undefined
  return {
    status,
    message: messageIn(record),
    ...(retry === undefined ? {} : { retry }),
    ...(retryAfter === undefined ? {} : { retryAfterMs: retryAfter * SECOND }),
  }
}

/** Formats the errors of the server: credentials, limits, unknown paths, invalid bodies. */
export function formatError({ record, status, retryAfter, requestId }: FailedRequest): FormattedError {
  const error = recordError(record, status, retryAfter)
  return {
    body: errorBody(error, requestId),
    headers: errorHeaders(error, requestId),
    event: errorEvent(error, requestId),
  }
}

/** Names of fields of model calls, and kinds of content, as this API writes them. */
const WIRE_NAMES: Readonly<Record<string, string>> = {
  stop: 'stop_sequences',
  parallel_tool_calls: 'tool_choice.disable_parallel_tool_use',
  response_schema: 'output_config.format',
  response_schema_name: 'output_config.format',
  reasoning_effort: 'output_config.effort',
  reasoning_tokens: 'thinking.budget_tokens',
  strict_tools: 'tools.strict',
  cache_hints: 'cache_control',
  images: 'image',
  image_urls: 'image.source.url',
  files: 'document',
  message: 'messages',
}

/** The name of a field of a model call on this wire. `name` is camelCase or snake_case. */
export function wireName(name: string): string {
  const snake = name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
  return (Object.hasOwn(WIRE_NAMES, snake) ? WIRE_NAMES[snake] : undefined) ?? snake
}

function messageIn({ error, details }: ErrorRecord): string {
  const { field, reason } = details
  if (typeof field !== 'string' || typeof reason !== 'string' || !Object.hasOwn(WIRE_NAMES, field)) return error
  return error.startsWith(`${field} `) ? `${wireName(field)} ${reason}` : error
}

/** Statuses of failed model calls. A refused credential of svc is not an error of its client. */
const FAILURES: Readonly<Record<ModelFailureKind, number>> = {
  rate_limited: 429,
  overloaded: 529,
  bad_request: 400,
  authentication: 500,
  context_too_long: 400,
  content_refused: 400,
  network: 500,
  timeout: 504,
}

/** Statuses of a model server for a bad request that say more than 400. */
const KEPT: ReadonlySet<number> = new Set([404, 413])

/** A failed model call as an error of this API; `undefined` for another error. */
export function modelError(error: unknown): WireError | undefined {
  const failure = modelFailureOf(error)
  if (!failure) return undefined
  const { kind, retryable, retryAfterMs, upstreamStatus = 0 } = failure
  return {
    status: kind === 'bad_request' && KEPT.has(upstreamStatus) ? upstreamStatus : FAILURES[kind],
    message: kind === 'context_too_long' ? tooLong(failure, messageOf(error)) : messageOf(error),
    retry: retryable === true,
    ...(Number.isFinite(retryAfterMs) ? { retryAfterMs: Number(retryAfterMs) } : {}),
  }
}

/** Clients of this API shorten the conversation when they read these words. */
const tooLong = ({ limit, count }: Partial<ModelFailure>, message: string) =>
  limit === undefined || count === undefined
    ? `prompt is too long: ${message}`
    : `prompt is too long: ${count} tokens > ${limit} maximum`
