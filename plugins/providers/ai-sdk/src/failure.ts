import { codeOf, messageOf, type SvcError } from '@svc/core'
import type { ModelFailureKind } from '@svc/core/contracts'
import {
  answerFailure,
  hasError,
  malformed,
  modelFailure,
  type ReadFailure,
  retryAfterOf,
  socketFailure,
} from '@svc/provider-http'
import { noKey, packageFailed } from './errors.ts'

/** An error that a package threw or streamed, recognized by its shape: each package may have its own copy of the SDK's classes. */
interface Thrown {
  readonly name?: unknown
  readonly statusCode?: unknown
  readonly responseHeaders?: unknown
  readonly responseBody?: unknown
  readonly data?: unknown
  readonly cause?: unknown
  readonly errors?: unknown
  readonly lastError?: unknown
}

/** Dependencies of `createFailures`. */
export interface FailureOptions {
  /** Name of the entry. */
  readonly provider: string
  /** Redacts secrets. */
  readonly hide: (text: string) => string
  /** Logs the message of an error that callers must not see, because it can contain paths. */
  readonly note: (words: string) => void
}

/** The failures of an entry. */
export interface Failures {
  /** Converts an error that the package threw. */
  readonly thrown: (error: unknown) => SvcError
  /** Converts an error inside a stream. A value that is not an `Error` comes from the upstream. */
  readonly streamed: (error: unknown) => SvcError
}

/** Creates the failures of an entry. Their messages come from the upstream or from svc, never from the package. */
export function createFailures({ provider, hide, note }: FailureOptions): Failures {
  const refuse = (refused: Thrown) => refusal(provider, refused, hide)
  const thrown = (error: unknown) => {
    const chain = chainOf(error)
    const failure = chain.find(link => codeOf(link) === 'MODEL_FAILED')
    if (failure) return failure as SvcError
    const refused = chain.find(link => isRefusal(link.statusCode) || containsError(link))
    if (refused) return refuse(refused)
    const socket = chain.find(link => SOCKET.test(codeOf(link) ?? ''))
    if (socket) return socketFailure(provider, socket)
    note(hide(messageOf(error)))
    const named = chain.map(link => NAMED.get(link.name)).find(makeFailure => makeFailure !== undefined)
    return named ? named(provider) : packageFailed(provider, nameOf(chain[0]))
  }
  const streamed = (error: unknown) =>
    error instanceof Error ? thrown(error) : answerFailure({ provider, status: 200, body: { error } }, readFailure, hide)
  return { thrown, streamed }
}

/** The name of an error, if it is a plain identifier, because an upstream can influence it. */
const nameOf = (error: Thrown | undefined) =>
  typeof error?.name === 'string' && /^[A-Za-z_]\w{0,60}$/.test(error.name) ? error.name : 'an error without a name'

const DEEPEST = 8

/** An error and its chain of causes, as far as they are objects. */
function chainOf(error: unknown): readonly Thrown[] {
  const chain: Thrown[] = []
  let found = error
  while (typeof found === 'object' && found !== null && chain.length < DEEPEST && !chain.includes(found)) {
    chain.push(found)
    const { cause, lastError, errors }: Thrown = found
    found = cause ?? lastError ?? (Array.isArray(errors) ? errors[0] : undefined)
  }
  return chain
}

const isRefusal = (status: unknown): status is number => typeof status === 'number' && status >= 400 && status < 600
const SOCKET =
  /^(E[A-Z_]{3,}|UND_ERR_\w+|HPE_\w+|CERT_\w+|ERR_(TLS|SSL)_\w+|UNABLE_TO_\w+|(DEPTH_ZERO_)?SELF_SIGNED_\w+|HOSTNAME_MISMATCH)$/

/** True for a status 200 with an error in the body. The package reports it as a malformed answer. */
const containsError = ({ statusCode, responseBody }: Thrown) => statusCode === 200 && hasError(parsed(responseBody))

function refusal(
  provider: string,
  { statusCode, responseHeaders, responseBody, data }: Thrown,
  hide: (text: string) => string
): SvcError {
  const retryAfterMs = retryAfterOf(headersOf(responseHeaders))
  const body = parsed(responseBody) ?? data
  return answerFailure(
    { provider, status: statusCode as number, body, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
    readFailure,
    hide
  )
}

const headersOf = (headers: unknown) =>
  typeof headers === 'object' && headers !== null ? (headers as Record<string, string>) : {}

/** The parsed body. Some packages pass a body that is already parsed. */
function parsed(text: unknown): unknown {
  if (typeof text !== 'string') return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

type Named = (provider: string) => SvcError
const unreadable: Named = provider => malformed(provider)
const unfit =
  (words: string): Named =>
  provider =>
    modelFailure(provider, { kind: 'bad_request' }, words)
const late: Named = provider => modelFailure(provider, { kind: 'timeout' }, 'the upstream did not answer in time')
const broken: Named = provider => modelFailure(provider, { kind: 'network' }, 'the connection to the upstream broke')

/** Failures by the error names of the SDK. */
const NAMED: ReadonlyMap<unknown, Named> = new Map([
  ['AI_LoadAPIKeyError', noKey],
  ['AI_LoadSettingError', unfit('its package lacks a setting; the log has the details')],
  ['AI_NoSuchModelError', unfit('its package does not know this model')],
  ['AI_UnsupportedFunctionalityError', unfit('its package does not support this request; the log has the details')],
  ['AI_InvalidPromptError', unfit('its package refused the conversation; the log has the details')],
  ['AI_InvalidArgumentError', unfit('its package refused the request; the log has the details')],
  ['AI_TypeValidationError', unreadable],
  ['AI_JSONParseError', unreadable],
  ['AI_InvalidResponseDataError', unreadable],
  ['AI_EmptyResponseBodyError', unreadable],
  ['AI_NoContentGeneratedError', unreadable],
  ['TimeoutError', late],
  ['AbortError', broken],
])

const KINDS: readonly (readonly [RegExp, ModelFailureKind])[] = [
  [/context_length|string_above_max|context_window/, 'context_too_long'],
  [/content_filter|content_policy|moderation|safety/, 'content_refused'],
  [/overloaded|unavailable|capacity/, 'overloaded'],
  [/rate_limit|too_many_requests|resource_exhausted|insufficient_quota|throttl/, 'rate_limited'],
  [/authentication|api_key|permission|unauthorized|unauthenticated|forbidden/, 'authentication'],
  [/timeout|deadline/, 'timeout'],
]
const FOREVER = /insufficient_quota/

/** Reads the `type`, `code` and `status` of an error object. */
const readFailure: ReadFailure = (status, body) => {
  const error = errorIn(body)
  const words = [error.type, error.code, error.status]
    .filter(item => typeof item === 'string')
    .join(' ')
    .toLowerCase()
  const message = typeof error.message === 'string' ? { message: error.message } : {}
  const kind = KINDS.find(([pattern]) => pattern.test(words))?.[1]
  if (kind !== undefined) return { ...message, kind, ...(FOREVER.test(words) ? { retryable: false } : {}) }
  return { ...message, ...(status < 400 && /invalid|not_found/.test(words) ? { kind: 'bad_request' } : {}) }
}

interface ErrorObject {
  readonly type?: unknown
  readonly code?: unknown
  readonly status?: unknown
  readonly message?: unknown
}

/** The error object in a body, up to three levels deep. */
function errorIn(body: unknown): ErrorObject {
  let current: unknown = body
  for (let depth = 0; depth < 3; depth++) {
    const inner: unknown = Array.isArray(current)
      ? current[0]
      : ((current as { response?: unknown; error?: unknown } | null)?.error ??
        (current as { response?: unknown } | null)?.response)
    if (typeof inner !== 'object' || inner === null) break
    current = inner
  }
  return typeof current === 'object' && current !== null ? current : { message: current }
}
