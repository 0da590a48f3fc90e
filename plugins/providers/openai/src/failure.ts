import type { ReadFailure } from '@svc/provider-http'

type Failure = ReturnType<ReadFailure>

interface WireError {
  readonly message?: unknown
  readonly code?: unknown
  readonly type?: unknown
  readonly innererror?: { readonly code?: unknown }
}

/** The failure by the code or type of an error. */
const CODES: Readonly<Record<string, Failure>> = {
  context_length_exceeded: { kind: 'context_too_long' },
  string_above_max_length: { kind: 'context_too_long' },
  exceed_context_size_error: { kind: 'context_too_long' },
  content_filter: { kind: 'content_refused' },
  content_policy_violation: { kind: 'content_refused' },
  ResponsibleAIPolicyViolation: { kind: 'content_refused' },
  invalid_prompt: { kind: 'content_refused' },
  moderation: { kind: 'content_refused' },
  // A retry cannot succeed.
  insufficient_quota: { kind: 'rate_limited', retryable: false },
  rate_limit_exceeded: { kind: 'rate_limited' },
  invalid_api_key: { kind: 'authentication' },
  model_not_found: { kind: 'bad_request' },
  server_error: { kind: 'overloaded' },
}

/** The failure by a status inside the body: some servers answer 200 and send the error in the stream. */
const STATUSES: Readonly<Record<number, Failure>> = {
  400: { kind: 'bad_request' },
  401: { kind: 'authentication' },
  402: { kind: 'authentication' },
  408: { kind: 'timeout' },
  413: { kind: 'context_too_long' },
  429: { kind: 'rate_limited' },
  504: { kind: 'timeout' },
}

/** Reads the error body of a chat completions server. */
export const failureOf: ReadFailure = (status, body) => {
  const error = errorIn(body)
  const message = wordsOf(error?.message)
  const byCode = [error?.innererror?.code, error?.code, error?.type].map(failureByCode).find(failure => failure !== undefined)
  const inside = status < 400 && byCode === undefined ? STATUSES[Number(error?.code)] : undefined
  // OpenRouter: the moderation of the model refused the request.
  const moderated = status === 403 && /moderation|flagged/i.test(message ?? '') ? CODES.moderation : undefined
  return { ...inside, ...byCode, ...moderated, ...(message === undefined ? {} : { message }) }
}

function errorIn(body: unknown): WireError | undefined {
  if (typeof body !== 'object' || body === null) return undefined
  const { error = body } = body as { error?: unknown }
  if (typeof error === 'string') return { ...body, message: error }
  return typeof error === 'object' && error !== null ? error : undefined
}

const failureByCode = (code: unknown): Failure | undefined =>
  typeof code === 'string' && Object.hasOwn(CODES, code) ? CODES[code] : undefined

/** Mistral reports the problems of a request as a list. */
function wordsOf(message: unknown): string | undefined {
  if (typeof message === 'string') return message
  return typeof message === 'object' && message !== null ? JSON.stringify(message) : undefined
}
