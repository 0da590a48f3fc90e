import { modelFailureOf } from '@svc/api-types'
import { messageOf, svcError } from '@svc/core'
import type {
  ErrorFormat,
  ErrorRecord,
  FailedRequest,
  FormattedError,
  ModelFailure,
  ModelFailureKind,
  RouteReply,
} from '@svc/core/contracts'

/** A method that no model has. */
export const methodUnknown = (name: string) =>
  svcError('NOT_FOUND', `there is no method at models/${name.slice(0, 200)}`, {
    hint: 'End the path with :generateContent, :streamGenerateContent, :countTokens, :embedContent or :batchEmbedContents',
  })

/** The status of an error in the words of Google, by the status of its response. */
const STATUSES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
  413: 'INVALID_ARGUMENT',
  415: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

/** An error as the API writes it, with the status of its response. */
export interface WireError {
  readonly status: number
  readonly message: string
  /** The code of svc, and the field that is to blame. */
  readonly reason?: string
  readonly field?: string
  /** Whether a client should send the same request again. Absent: the client decides. */
  readonly retry?: boolean
  readonly retryAfterMs?: number
}

const SECOND = 1_000
const TYPES = 'type.googleapis.com/google.rpc.'

/** The JSON of an error. */
export function errorBody({ status, message, reason, field, retry, retryAfterMs }: WireError) {
  const details = [
    ...(reason === undefined ? [] : [{ '@type': `${TYPES}ErrorInfo`, reason, domain: 'svc' }]),
    ...(field === undefined ? [] : [{ '@type': `${TYPES}BadRequest`, fieldViolations: [{ field, description: message }] }]),
    ...(retryAfterMs === undefined || retry === false
      ? []
      : [{ '@type': `${TYPES}RetryInfo`, retryDelay: `${retryAfterMs / SECOND}s` }]),
  ]
  return {
    error: { code: status, message, status: STATUSES[status] ?? 'INTERNAL', ...(details.length === 0 ? {} : { details }) },
  }
}

const errorHeaders = ({ retry, retryAfterMs }: WireError): Record<string, string> => ({
  ...(retry === undefined ? {} : { 'x-should-retry': String(retry) }),
  ...(retryAfterMs === undefined
    ? {}
    : {
        'retry-after': String(Math.max(1, Math.ceil(retryAfterMs / SECOND))),
        'retry-after-ms': String(Math.round(retryAfterMs)),
      }),
})

/** The whole response to a failed request. */
export const errorReply = (error: WireError): RouteReply => ({
  status: error.status,
  headers: errorHeaders(error),
  body: errorBody(error),
})

/** Statuses after which the same request can succeed. */
const PASSING: ReadonlySet<number> = new Set([429, 503, 504])

/** An error record of the server as an error of this API. */
export function recordError(record: ErrorRecord, status: number, retryAfter?: number): WireError {
  const { error_code: reason, details } = record
  const retry = PASSING.has(status) ? details.retryable !== false : status < 500 ? false : undefined
  const field = typeof details.field === 'string' ? wireName(details.field) : undefined
  return {
    status,
    message: messageIn(record),
    reason,
    ...(field === undefined || status !== 400 ? {} : { field }),
    ...(retry === undefined ? {} : { retry }),
    ...(retryAfter === undefined ? {} : { retryAfterMs: retryAfter * SECOND }),
  }
}

/** The formats of errors: of all requests below the path of the API, and of those below /v1/models that SDKs of Google send. */
export const ERROR_FORMATS: Readonly<Record<string, ErrorFormat>> = {
  gemini: { path: '/v1beta', format: async failed => formatError(failed) },
  gemini_v1: { path: '/v1/models', header: 'x-goog-api-client', format: async failed => formatError(failed) },
}

function formatError({ record, status, retryAfter }: FailedRequest): FormattedError {
  const error = recordError(record, status, retryAfter)
  return { body: errorBody(error), headers: errorHeaders(error), event: `data: ${JSON.stringify(errorBody(error))}\n\n` }
}

/** Names of fields of model calls, and kinds of content, as this API writes them. */
const WIRE_NAMES: Readonly<Record<string, string>> = {
  max_tokens: 'generationConfig.maxOutputTokens',
  temperature: 'generationConfig.temperature',
  top_p: 'generationConfig.topP',
  top_k: 'generationConfig.topK',
  stop: 'generationConfig.stopSequences',
  seed: 'generationConfig.seed',
  n: 'generationConfig.candidateCount',
  frequency_penalty: 'generationConfig.frequencyPenalty',
  presence_penalty: 'generationConfig.presencePenalty',
  logprobs: 'generationConfig.responseLogprobs',
  response_format: 'generationConfig.responseMimeType',
  response_schema: 'generationConfig.responseJsonSchema',
  response_schema_name: 'generationConfig.responseJsonSchema',
  reasoning_effort: 'generationConfig.thinkingConfig',
  reasoning_tokens: 'generationConfig.thinkingConfig.thinkingBudget',
  tool_choice: 'toolConfig.functionCallingConfig',
  strict_tools: 'toolConfig.functionCallingConfig.mode',
  images: 'inlineData',
  image_urls: 'fileData',
  files: 'inlineData',
  audio: 'inlineData',
  message: 'contents',
  messages: 'contents',
  dimensions: 'outputDimensionality',
  input: 'content',
}

/** The name of a field of a model call on this wire. `name` is camelCase or snake_case. */
export function wireName(name: string): string {
  const snake = name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
  return Object.hasOwn(WIRE_NAMES, snake) ? WIRE_NAMES[snake]! : name
}

function messageIn({ error, details }: ErrorRecord): string {
  const { field, reason } = details
  if (typeof field !== 'string' || typeof reason !== 'string' || !Object.hasOwn(WIRE_NAMES, field)) return error
  return error.startsWith(`${field} `) ? `${wireName(field)} ${reason}` : error
}

/** Statuses of failed model calls. A refused credential of svc is not an error of its client. */
const FAILURES: Readonly<Record<ModelFailureKind, number>> = {
  rate_limited: 429,
  overloaded: 503,
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
    reason: kind.toUpperCase(),
    retry: retryable === true,
    ...(Number.isFinite(retryAfterMs) ? { retryAfterMs: Number(retryAfterMs) } : {}),
  }
}

/** Clients of this API shorten the conversation when they read these words. */
const tooLong = ({ limit, count }: Partial<ModelFailure>, message: string) =>
  limit === undefined || count === undefined
    ? `The input token count exceeds the maximum number of tokens allowed: ${message}`
    : `The input token count (${count}) exceeds the maximum number of tokens allowed (${limit}).`
