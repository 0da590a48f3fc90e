import { type CallContext, codeOf, type JsonSchema, messageOf, type SvcError, svcError } from '@svc/core'
import type {
  ErrorFormat,
  FailedRequest,
  Http,
  ModelFailure,
  ModelFailureKind,
  RequestField,
  Route,
  RouteResponse,
} from '@svc/core/contracts'

/** The error of a response, as the clients of the API read it. */
export interface ApiError {
  readonly message: string
  readonly type: string
  readonly code: string | null
  readonly param: string | null
}

/** A failed call: status, headers and error of its response. */
export interface ApiFailure {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly error: ApiError
}

/** The last frame of a stream that fails. */
export const errorFrame = (error: ApiError) => `data: ${JSON.stringify({ error })}\n\n`

const INVALID = 'invalid_request_error'

/** A field of the request that is not valid. `param`: its place in the body. */
export const invalidParam = (param: string, reason: string, more: Readonly<Record<string, unknown>> = {}): SvcError =>
  svcError('INVALID_VALUE', `${param} ${reason}`, { details: { field: param, reason, ...more } })

/** A field that neither svc nor the model supports. */
export const unsupportedParam = (param: string, model: string): SvcError =>
  invalidParam(param, `is not supported for the model ${model.slice(0, 200)}`, { unsupported: true })

/** The names of fields in the requests of an API, by their names in `OpenRequest`. */
export type FieldNames = Readonly<Partial<Record<RequestField, string>>>

const snake = (name: string) => name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

/** The name of a field as its client wrote it. */
export const nameOf = (field: RequestField, names: FieldNames): string => names[field] ?? snake(field)

/** Names a field as the client does in an error of the services behind the API, which use the names of svc. */
export function renamed(error: unknown, names: FieldNames): unknown {
  const { details } = Object(error) as { readonly details?: Readonly<Record<string, unknown>> }
  if (codeOf(error) !== 'INVALID_VALUE' || typeof details?.field !== 'string') return error
  const [, name] = Object.entries(names).find(([field]) => snake(field) === details.field) ?? []
  if (name === undefined || name === details.field) return error
  const message = typeof details.reason === 'string' ? `${name} ${details.reason}` : messageOf(error)
  return svcError('INVALID_VALUE', message, { details: { ...details, field: name }, cause: error })
}

interface KindAnswer {
  readonly status: number
  readonly type: string
  readonly code: string
}

const KINDS: Readonly<Record<ModelFailureKind, KindAnswer>> = {
  rate_limited: { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  overloaded: { status: 503, type: 'server_error', code: 'overloaded' },
  bad_request: { status: 400, type: INVALID, code: 'rejected_by_model' },
  // the credential of svc is wrong, not that of the client
  authentication: { status: 502, type: 'server_error', code: 'upstream_authentication_failed' },
  context_too_long: { status: 400, type: INVALID, code: 'context_length_exceeded' },
  content_refused: { status: 400, type: INVALID, code: 'content_policy_violation' },
  network: { status: 502, type: 'server_error', code: 'upstream_error' },
  timeout: { status: 504, type: 'server_error', code: 'upstream_timeout' },
}
const NOT_FOUND: KindAnswer = { status: 404, type: INVALID, code: 'model_not_found' }
const QUOTA: KindAnswer = { status: 429, type: 'insufficient_quota', code: 'insufficient_quota' }

/**
 * The response to a failed model call; `undefined` for an error that is not of a model. `messages`: the field that has the
 * messages. Also lets the server log the failure.
 */
export async function modelFailure(
  error: unknown,
  messages: string,
  http: Http,
  ctx: CallContext
): Promise<ApiFailure | undefined> {
  if (codeOf(error) !== 'MODEL_FAILED') return undefined
  const { message, details } = error as SvcError & { readonly details: Partial<ModelFailure> }
  await http.explain({ code: 'MODEL_FAILED', message, details: { ...details } }, ctx)
  const { kind = 'network', retryable = false, retryAfterMs } = details
  const { status, type, code } = answerOf(details)
  return {
    status,
    headers: status < 429 ? {} : retryHeaders(retryable, retryAfterMs),
    error: { message, type, code, param: kind === 'context_too_long' ? messages : null },
  }
}

function answerOf({ kind = 'network', retryable, requestOnly, upstreamStatus = 0 }: Partial<ModelFailure>): KindAnswer {
  if (kind === 'rate_limited' && !retryable) return QUOTA
  if (kind !== 'bad_request' || requestOnly) return KINDS[kind] ?? KINDS.network
  if (upstreamStatus === 404) return NOT_FOUND
  // otherwise, the server broke its protocol
  return upstreamStatus >= 400 && upstreamStatus < 500 ? KINDS.bad_request : KINDS.network
}

/** The headers that tell clients whether and when to try again. */
function retryHeaders(retryable: boolean, afterMs: number | undefined): Record<string, string> {
  const isKnown = retryable && typeof afterMs === 'number' && Number.isFinite(afterMs) && afterMs >= 0
  return {
    'x-should-retry': String(retryable),
    ...(isKnown
      ? { 'retry-after': String(Math.max(1, Math.ceil(afterMs / 1000))), 'retry-after-ms': String(Math.ceil(afterMs)) }
      : {}),
  }
}

/** Errors of the server by their code: type and code of the API. */
const CODES: Readonly<Record<string, readonly [type: string, code: string]>> = {
  MISSING_FIELD: [INVALID, 'missing_required_parameter'],
  INVALID_VALUE: [INVALID, 'invalid_value'],
  AUTHENTICATION_FAILED: [INVALID, 'invalid_api_key'],
  FORBIDDEN: ['permission_error', 'permission_denied'],
  NOT_FOUND: [INVALID, 'unknown_url'],
  MODEL_NOT_FOUND: [INVALID, 'model_not_found'],
  METHOD_NOT_ALLOWED: [INVALID, 'method_not_supported'],
  PAYLOAD_TOO_LARGE: [INVALID, 'request_too_large'],
  UNSUPPORTED_MEDIA_TYPE: [INVALID, 'unsupported_media_type'],
  RATE_LIMITED: ['rate_limit_error', 'rate_limit_exceeded'],
  PROVIDER_ERROR: ['server_error', 'upstream_error'],
  UNAVAILABLE: ['server_error', 'unavailable'],
  TIMEOUT: ['server_error', 'timeout'],
}
const INTERNAL = ['server_error', 'internal_error'] as const

const CONTEXT_TOO_LONG = 'the context is too long'

/** All errors of the server below /v1, and those of the routes that are not of a model. */
export const ERROR_FORMAT: ErrorFormat = {
  path: '/v1',
  async format(failed) {
    const error = apiError(failed)
    const { status, retryAfter } = failed
    const isRepeatable =
      failed.record.details.retryable !== false && (status === 429 || status === 503 || retryAfter !== undefined)
    const headers: Record<string, string> = status === 429 || status >= 500 ? { 'x-should-retry': String(isRepeatable) } : {}
    return { body: { error }, headers, event: errorFrame(error) }
  },
}

function apiError({ record, method, path }: Pick<FailedRequest, 'record' | 'method' | 'path'>): ApiError {
  const { error_code, error: message, details } = record
  const [type, code] = Object.hasOwn(CODES, error_code) ? CODES[error_code]! : INTERNAL
  if (error_code === 'NOT_FOUND')
    return { message: `Unknown request URL: ${method} ${path.slice(0, 200)}`, type, code, param: null }
  return { message, type, code: codeIn(error_code, details) ?? code, param: paramIn(error_code, details) }
}

function codeIn(errorCode: string, { unsupported, reason }: Readonly<Record<string, unknown>>): string | undefined {
  if (errorCode !== 'INVALID_VALUE') return undefined
  if (unsupported === true) return 'unsupported_parameter'
  return reason === CONTEXT_TOO_LONG ? 'context_length_exceeded' : undefined
}

function paramIn(
  errorCode: string,
  { field, required_fields, provided_fields }: Readonly<Record<string, unknown>>
): string | null {
  if (errorCode === 'MODEL_NOT_FOUND') return 'model'
  if (errorCode === 'MISSING_FIELD' && Array.isArray(required_fields) && Array.isArray(provided_fields)) {
    const missing: unknown = required_fields.find(name => !provided_fields.includes(name))
    return typeof missing === 'string' ? missing : null
  }
  return typeof field === 'string' ? field : null
}

const text = { type: 'string' } as const
const textOrNull = { type: ['string', 'null'] } as const
const ERROR_SCHEMA: JsonSchema = {
  title: 'ModelApiError',
  type: 'object',
  properties: {
    error: {
      type: 'object',
      properties: { message: text, type: text, code: textOrNull, param: textOrNull },
      required: ['message', 'type', 'code', 'param'],
    },
  },
  required: ['error'],
}

/** The errors of all routes by their status, for the OpenAPI document. */
const ERROR_RESPONSES: Readonly<Record<string, RouteResponse>> = Object.fromEntries(
  Object.entries({
    400: 'The request is not valid, or the model does not support it.',
    401: 'The credential is missing or not valid.',
    403: 'The credential does not have the scope.',
    404: 'The model or the response does not exist.',
    413: 'The body is too large.',
    415: 'The body is not JSON.',
    429: 'A limit of svc or of the model is reached.',
    500: 'svc failed.',
    502: 'The server of the model failed.',
    503: 'The model or svc is overloaded.',
    504: 'The model did not answer in time.',
  }).map(([status, description]) => [status, { description, schema: ERROR_SCHEMA }])
)

/** A route of the API, with its errors. */
export const withErrors = (route: Route): Route => ({ ...route, responses: { ...ERROR_RESPONSES, ...route.responses } })
