import { codeOf, messageOf, type SvcError } from '@svc/core'
import type { ModelFailureKind } from '@svc/core/contracts'
import { answerFailure, hasError, malformed, modelFailure, type ReadFailure, retryAfterOf, socketFailure } from '@svc/upstream'
import { noKey } from './errors.ts'

/** What a package threw or streamed as an error, told by its shape: each package may have its own copy of the SDK's classes. */
interface Thrown {
  readonly name?: unknown
  readonly message?: unknown
  readonly statusCode?: unknown
  readonly responseHeaders?: unknown
  readonly responseBody?: unknown
  readonly data?: unknown
  readonly cause?: unknown
  readonly errors?: unknown
  readonly lastError?: unknown
}

/** Makes the failures of an entry from whatever its package throws. `hide` takes secrets out of words. */
export function createFailureOf(provider: string, hide: (text: string) => string): (error: unknown) => SvcError {
  return error => {
    const chain = chainOf(error)
    const told = chain.find(one => codeOf(one) === 'MODEL_FAILED')
    if (told) return told as SvcError
    const refused = chain.find(one => isRefusal(one.statusCode) || tellsError(one))
    if (refused) return refusal(provider, refused, hide)
    const socket = chain.find(one => SOCKET.test(codeOf(one) ?? ''))
    if (socket) return socketFailure(provider, socket)
    const named = chain.map(one => NAMED.get(one.name)).find(one => one !== undefined)
    if (named) return named(provider, hide(messageOf(chain[0])))
    if (chain[0] instanceof Error)
      return modelFailure(provider, { kind: 'bad_request' }, `its package failed: ${hide(messageOf(error))}`)
    return answerFailure({ provider, status: 200, body: { error } }, readFailure, hide)
  }
}

const DEEPEST = 8

/** An error and what it came from, as far as they are objects. */
function chainOf(error: unknown): readonly Thrown[] {
  const chain: Thrown[] = []
  let one = error
  while (typeof one === 'object' && one !== null && chain.length < DEEPEST && !chain.includes(one)) {
    chain.push(one)
    const { cause, lastError, errors }: Thrown = one
    one = cause ?? lastError ?? (Array.isArray(errors) ? errors[0] : undefined)
  }
  return chain
}

const isRefusal = (status: unknown): status is number => typeof status === 'number' && status >= 400 && status < 600
const SOCKET =
  /^(E[A-Z_]{3,}|UND_ERR_\w+|HPE_\w+|CERT_\w+|ERR_(TLS|SSL)_\w+|UNABLE_TO_\w+|(DEPTH_ZERO_)?SELF_SIGNED_\w+|HOSTNAME_MISMATCH)$/

/** A good answer with an error in it: to the package it is one of a wrong form. */
const tellsError = ({ statusCode, responseBody }: Thrown) => statusCode === 200 && hasError(parsed(responseBody))

function refusal(
  provider: string,
  { statusCode, responseHeaders, responseBody, data, message }: Thrown,
  hide: (text: string) => string
): SvcError {
  const retryAfterMs = retryAfterOf(headersOf(responseHeaders))
  const body = parsed(responseBody) ?? data ?? { message }
  return answerFailure(
    { provider, status: statusCode as number, body, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
    readFailure,
    hide
  )
}

const headersOf = (headers: unknown) =>
  typeof headers === 'object' && headers !== null ? (headers as Record<string, string>) : {}

/** Some packages call a body what they have parsed already. */
function parsed(text: unknown): unknown {
  if (typeof text !== 'string') return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

type Named = (provider: string, message: string) => SvcError
const unreadable: Named = provider => malformed(provider)
const unfit: Named = (provider, message) => modelFailure(provider, { kind: 'bad_request' }, message)
const late: Named = provider => modelFailure(provider, { kind: 'timeout' }, 'the upstream did not answer in time')
const broken: Named = provider => modelFailure(provider, { kind: 'network' }, 'the connection to the upstream broke')

/** By the names that the SDK gives its errors. */
const NAMED: ReadonlyMap<unknown, Named> = new Map([
  ['AI_LoadAPIKeyError', noKey],
  ['AI_LoadSettingError', unfit],
  ['AI_NoSuchModelError', unfit],
  ['AI_UnsupportedFunctionalityError', unfit],
  ['AI_InvalidPromptError', unfit],
  ['AI_InvalidArgumentError', unfit],
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

/** The words that the wires have for what went wrong: `type`, `code`, `status` of an error object. */
const readFailure: ReadFailure = (status, body) => {
  const error = errorIn(body)
  const words = [error.type, error.code, error.status]
    .filter(one => typeof one === 'string')
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

/** The error object in a body, however deep the wire puts it. */
function errorIn(body: unknown): ErrorObject {
  let found: unknown = body
  for (let depth = 0; depth < 3; depth++) {
    const inner: unknown = Array.isArray(found)
      ? found[0]
      : ((found as { response?: unknown; error?: unknown } | null)?.error ?? (found as { response?: unknown } | null)?.response)
    if (typeof inner !== 'object' || inner === null) break
    found = inner
  }
  return typeof found === 'object' && found !== null ? found : { message: found }
}
