import type { components } from './api.ts'

/** Error codes that a server returns. */
export type ServerErrorCode = components['schemas']['Error']['error_code']

/** Error codes of the client itself. Their `status` is 0 if there was no response. */
export type ClientErrorCode =
  | 'CONNECTION_FAILED'
  | 'CREDENTIAL_INVALID'
  | 'EVENT_TOO_LARGE'
  | 'REDIRECTED'
  | 'REQUEST_INVALID'
  | 'REQUEST_TIMEOUT'
  | 'RESPONSE_INVALID'
  | 'RESPONSE_TOO_LARGE'
  | 'STREAM_CUT'
  | 'STREAM_INVALID'
  | 'TURN_LOST'

export type ErrorCode = ServerErrorCode | ClientErrorCode

type Details = Readonly<Record<string, unknown>>

interface FieldDetails extends Details {
  readonly field?: string
  readonly reason?: string
}

interface RetryDetails extends Details {
  readonly reason?: string
  /** Seconds. */
  readonly retry_after?: number
  /** False if the request may have been done. */
  readonly retryable?: boolean
}

interface ProviderDetails extends Details {
  readonly provider?: string
  readonly retryable?: boolean
  readonly upstream_status?: number
}

/** The details that the documented errors have. Other errors have any. */
interface DetailsByCode {
  readonly MISSING_FIELD: FieldDetails
  readonly INVALID_VALUE: FieldDetails
  readonly RATE_LIMITED: RetryDetails
  readonly UNAVAILABLE: RetryDetails
  readonly PROVIDER_ERROR: ProviderDetails
}

export type ErrorDetails<C extends ErrorCode> = C extends keyof DetailsByCode ? DetailsByCode[C] : Details

export interface ApiErrorOptions<C extends ErrorCode = ErrorCode> {
  readonly code: C
  readonly status?: number
  readonly details?: ErrorDetails<C>
  readonly hint?: string | undefined
  readonly requestId?: string | undefined
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/** A request that failed. It contains no credential and no request body. */
export class ApiError<C extends ErrorCode = ErrorCode> extends Error {
  override readonly name = 'ApiError'
  readonly code: C
  /** Status of the response; 0 without a response. */
  readonly status: number
  readonly details: ErrorDetails<C>
  /** What to do, if it is known. */
  readonly hint: string | undefined
  /** The log of the server has the request under this id. */
  readonly requestId: string | undefined
  /** The time that the server asks to wait before the next request. */
  readonly retryAfterMs: number | undefined

  constructor(message: string, options: ApiErrorOptions<C>) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = options.code
    this.status = options.status ?? 0
    this.details = options.details ?? ({} as ErrorDetails<C>)
    this.hint = options.hint
    this.requestId = options.requestId
    this.retryAfterMs = options.retryAfterMs
  }
}

/** Whether a thrown value is an error of the client, and has this code. */
export function isApiError<C extends ErrorCode = ErrorCode>(error: unknown, code?: C): error is ApiError<C> {
  return error instanceof ApiError && (code === undefined || error.code === code)
}

/** Reads the error of a response whose status is not 2xx. */
export function responseError(response: Response, text: string): ApiError {
  const { status, headers } = response
  const more = { status, requestId: headers.get('x-request-id') ?? undefined, retryAfterMs: retryAfterOf(headers) }
  if (response.type === 'opaqueredirect' || (status >= 300 && status < 400))
    return new ApiError('the server redirects to another address', {
      ...more,
      code: 'REDIRECTED',
      hint: 'Set url to the address to which the server redirects',
    })
  const body = objectIn(text)
  const record = recordOf(body)
  if (!record)
    return new ApiError(`the response with status ${status} is not an error of svc`, {
      ...more,
      code: 'RESPONSE_INVALID',
      // such as the record of /health when a check fails
      ...(body ? { details: { body } } : {}),
      hint: 'Check that url leads to a svc server, and what is between it and this client',
    })
  const { error, error_code: code, details, hint } = record
  return new ApiError(error, { ...more, code, details, hint: hint ?? textIn(details.hint) })
}

type ErrorRecord = components['schemas']['Error'] & { readonly hint: string | undefined }

function recordOf(record: Readonly<Record<string, unknown>> | undefined): ErrorRecord | undefined {
  const code = textIn(record?.error_code)
  if (!record || code === undefined) return undefined
  const details = typeof record.details === 'object' && record.details !== null ? { ...record.details } : {}
  // a newer server can have more codes
  return {
    success: false,
    error: textIn(record.error) ?? code,
    error_code: code as ServerErrorCode,
    details,
    hint: textIn(record.hint),
  }
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined // such as the page of a proxy
  }
}

const textIn = (value: unknown) => (typeof value === 'string' ? value : undefined)

function retryAfterOf(headers: Headers): number | undefined {
  const value = headers.get('retry-after')
  if (value === null) return undefined
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}
