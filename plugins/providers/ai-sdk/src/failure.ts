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

/** What failures are made with. */
export interface FailureParts {
  /** Name of the entry. */
  readonly provider: string
  /** Takes secrets out of words. */
  readonly hide: (text: string) => string
  /** Logs the message of an error that callers must not see, because it can contain paths. */
  readonly note: (words: string) => void
}

/** The failures of an entry. */
export interface Failures {
  /** From whatever its package threw. */
  readonly thrown: (error: unknown) => SvcError
  /** From an error inside a stream: one that is no `Error` is what the upstream sent. */
  readonly streamed: (error: unknown) => SvcError
}

/** Makes the failures of an entry: in the upstream's words and ours, never in those of its package. */
export function createFailures({ provider, hide, note }: FailureParts): Failures {
  const refuse = (refused: Thrown) => refusal(provider, refused, hide)
  const thrown = (error: unknown) => {
    const chain = chainOf(error)
    const told = chain.find(one => codeOf(one) === 'MODEL_FAILED')
    if (told) return told as SvcError
    const refused = chain.find(one => isRefusal(one.statusCode) || tellsError(one))
    if (refused) return refuse(refused)
    const socket = chain.find(one => SOCKET.test(codeOf(one) ?? ''))
    if (socket) return socketFailure(provider, socket)
    note(hide(messageOf(error)))
    const named = chain.map(one => NAMED.get(one.name)).find(one => one !== undefined)
    return named ? named(provider) : packageFailed(provider, nameOf(chain[0]))
  }
  const streamed = (error: unknown) =>
    error instanceof Error ? thrown(error) : answerFailure({ provider, status: 200, body: { error } }, readFailure, hide)
  return { thrown, streamed }
}

/** A name that is one: a stranger may write anything there. */
const nameOf = (error: Thrown | undefined) =>
  typeof error?.name === 'string' && /^[A-Za-z_]\w{0,60}$/.test(error.name) ? error.name : 'an error without a name'

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

/** Some packages call a body what they have parsed already. */
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

/** By the names that the SDK gives its errors. */
const NAMED: ReadonlyMap<unknown, Named> = new Map([
  ['AI_LoadAPIKeyError', noKey],
  ['AI_LoadSettingError', unfit('its package misses a setting; the log has its words')],
  ['AI_NoSuchModelError', unfit('its package knows no such model')],
  ['AI_UnsupportedFunctionalityError', unfit('its package cannot do what was asked; the log has its words')],
  ['AI_InvalidPromptError', unfit('its package takes no such conversation; the log has its words')],
  ['AI_InvalidArgumentError', unfit('its package takes no such request; the log has its words')],
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
