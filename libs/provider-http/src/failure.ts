import { codeOf, type SvcError, svcError } from '@svc/core'
import type { ModelFailure, ModelFailureKind } from '@svc/core/contracts'

/** Which kinds may pass when the same call is made again. */
const RETRYABLE: Readonly<Record<ModelFailureKind, boolean>> = {
  rate_limited: true,
  overloaded: true,
  network: true,
  timeout: true,
  bad_request: false,
  authentication: false,
  context_too_long: false,
  content_refused: false,
}

/** A failure whose `retryable` follows from its kind, where it does not say. */
export type FailureParts = Omit<ModelFailure, 'retryable'> & { readonly retryable?: boolean }

/** A failed call of a model: code MODEL_FAILED, the failure as details. */
export function modelFailure(provider: string, failure: FailureParts, message: string, hint?: string): SvcError {
  const details = { retryable: RETRYABLE[failure.kind], ...failure }
  return svcError('MODEL_FAILED', `${provider}: ${message}`, { details, ...(hint === undefined ? {} : { hint }) })
}

/** What the status alone says. */
const KINDS: Readonly<Record<number, ModelFailureKind>> = {
  401: 'authentication',
  402: 'authentication',
  403: 'authentication',
  407: 'authentication',
  408: 'timeout',
  413: 'context_too_long',
  425: 'overloaded',
  429: 'rate_limited',
  504: 'timeout',
  524: 'timeout',
}

/** What an error body says in the terms of one wire; what it leaves out follows from the status. */
export type ReadFailure = (status: number, body: unknown) => Partial<ModelFailure> & { readonly message?: string }

export interface RefusedAnswer {
  readonly provider: string
  readonly status: number
  /** Parsed where it was JSON, else text. */
  readonly body: unknown
  readonly retryAfterMs?: number
}

/** The failure that an answer with an error in it stands for. `status` 200: an error inside a stream or a good answer. */
export function answerFailure(answer: RefusedAnswer, read: ReadFailure | undefined, hide: (text: string) => string): SvcError {
  const { provider, status, body, retryAfterMs } = answer
  const { message = messageIn(body), ...said } = read?.(status, body) ?? {}
  const sizes = (said.kind ?? KINDS[status] ?? 'bad_request') === 'rate_limited' ? undefined : contextSizes(message)
  const kind = said.kind ?? (sizes ? 'context_too_long' : kindOf(status))
  const failure = {
    ...(status >= 400 ? { upstreamStatus: status } : {}),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(kind === 'context_too_long' ? sizes : {}),
    ...said,
    kind,
  }
  const words = status >= 400 ? `the upstream answered ${status}` : 'the upstream reported an error'
  return modelFailure(provider, failure, message === '' ? words : `${words}: ${hide(message)}`, hintOf(provider, kind))
}

const kindOf = (status: number): ModelFailureKind =>
  KINDS[status] ?? (status >= 500 ? 'overloaded' : status >= 400 ? 'bad_request' : 'overloaded')

const hintOf = (provider: string, kind: ModelFailureKind): string | undefined =>
  kind === 'authentication'
    ? `check the key that providers.${provider} names: that it is valid and may use this model`
    : kind === 'context_too_long'
      ? 'shorten the message, or take a model with a longer context'
      : undefined

/** The words of an error body, in the forms that are common; a page or anything else has none. */
function messageIn(body: unknown): string {
  if (typeof body !== 'object' || body === null) return ''
  const { error, message, detail } = body as { error?: unknown; message?: unknown; detail?: unknown }
  const inner = (error as { message?: unknown } | null | undefined)?.message
  return [inner, error, message, detail].find(one => typeof one === 'string') ?? ''
}

/** Whether a body tells an error, whatever its status: an object with one, or a list that begins with such an object. */
export function hasError(body: unknown): boolean {
  const told: unknown = Array.isArray(body) ? body[0] : body
  const { error } = (typeof told === 'object' && told !== null ? told : {}) as { error?: unknown }
  return error !== undefined && error !== null
}

export const malformed = (provider: string): SvcError =>
  modelFailure(provider, { kind: 'network' }, 'the upstream sent what cannot be read')

export const cutShort = (provider: string): SvcError =>
  modelFailure(provider, { kind: 'network' }, 'the upstream cut its answer in the middle')

export const tooLarge = (provider: string, what: string): SvcError =>
  modelFailure(provider, { kind: 'network', retryable: false }, `the upstream sent ${what}`)

export const jsonLate = (provider: string, ms: number): SvcError =>
  modelFailure(provider, { kind: 'timeout' }, `the upstream did not answer within ${ms} ms`)

export const redirected = (provider: string, status: number): SvcError =>
  modelFailure(
    provider,
    { kind: 'bad_request', upstreamStatus: status },
    `the upstream answered with a redirect (${status}), and redirects are not followed`,
    `write the address it leads to as providers.${provider}.base_url`
  )

export const noEvents = (provider: string, type: string): SvcError =>
  modelFailure(
    provider,
    { kind: 'bad_request' },
    `the upstream answered with ${type}, which is not what its protocol says`,
    `check providers.${provider}.base_url: something else may answer there`
  )

/** How upstreams say that a request is longer than the model's context. */
const WORDS =
  /context[ _](length|window|size)|maximum context|too many (input )?tokens|prompt is too long|input (is )?too long|(exceeds?|longer than).{0,40}(context|number of tokens|token limit)/i
const LIMITS = [/maximum context length (?:is|of) (\d+)/i, /> (\d+) maximum/i, /tokens allowed \((\d+)\)/i, /n_ctx["' :=]+(\d+)/i]
const COUNTS = [
  /(?:resulted in|requested(?: about)?) (\d+) tokens/i,
  /(\d+) tokens > \d+/i,
  /token count \((\d+)\)/i,
  /n_prompt_tokens["' :=]+(\d+)/i,
]

/** The tokens allowed and counted, where a message says that the context is too long; `undefined` where it says something else. */
function contextSizes(message: string): Pick<ModelFailure, 'limit' | 'count'> | undefined {
  if (!WORDS.test(message)) return undefined
  const [limit, count] = [first(LIMITS, message), first(COUNTS, message)]
  return { ...(limit === undefined ? {} : { limit }), ...(count === undefined ? {} : { count }) }
}

function first(patterns: readonly RegExp[], message: string): number | undefined {
  for (const pattern of patterns) {
    const found = pattern.exec(message)?.[1]
    if (found !== undefined && Number.isSafeInteger(Number(found))) return Number(found)
  }
  return undefined
}

interface SocketWords {
  readonly words: string
  readonly hint?: (provider: string) => string
  readonly failure?: FailureParts
}

const BASE_URL = (provider: string) => `start the server that providers.${provider}.base_url names, or fix the address`
const HOST_NAME = (provider: string) => `check providers.${provider}.base_url and the network`
const NOT_HTTP: SocketWords = { words: 'the upstream sent something that is not HTTP', hint: BASE_URL }
const BROKEN: SocketWords = { words: 'the connection to the upstream broke' }
const UNREACHABLE: SocketWords = { words: 'the upstream cannot be reached', hint: HOST_NAME }
const LATE: SocketWords = { words: 'the upstream did not answer in time', failure: { kind: 'timeout' } }
const CLOSED: SocketWords = { words: 'the provider was closed', failure: { kind: 'network', retryable: false } }

const SOCKET: Readonly<Record<string, SocketWords>> = {
  ECONNREFUSED: { words: 'the upstream refused the connection', hint: BASE_URL },
  ENOTFOUND: { words: 'the host of the upstream cannot be found', hint: HOST_NAME },
  EAI_AGAIN: { words: 'the host of the upstream cannot be found now', hint: HOST_NAME },
  EHOSTUNREACH: UNREACHABLE,
  ENETUNREACH: UNREACHABLE,
  ETIMEDOUT: { ...LATE, hint: HOST_NAME },
  UND_ERR_CONNECT_TIMEOUT: { ...LATE, words: 'the upstream took no connection in time', hint: HOST_NAME },
  UND_ERR_HEADERS_TIMEOUT: LATE,
  UND_ERR_BODY_TIMEOUT: LATE,
  UND_ERR_HEADERS_OVERFLOW: NOT_HTTP,
  UND_ERR_DESTROYED: CLOSED,
  UND_ERR_CLOSED: CLOSED,
  PROVIDER_CLOSED: CLOSED,
}

const CERTIFICATE = /^(CERT_|ERR_TLS_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|ERR_SSL_|HOSTNAME_MISMATCH)/
const UNTRUSTED: SocketWords = {
  words: 'no trusted TLS connection to the upstream',
  hint: provider => `check providers.${provider}.base_url, or trust its certificate: NODE_EXTRA_CA_CERTS=<file>`,
  failure: { kind: 'network', retryable: false },
}

/** The failure that a broken connection stands for. The text contains no address, because callers see it. */
export function socketFailure(provider: string, error: unknown): SvcError {
  const code = codeOf(error) ?? codeOf((error as { errors?: unknown[] } | undefined)?.errors?.[0]) ?? ''
  const { words, hint, failure = { kind: 'network' } } = wordsOf(code)
  return modelFailure(provider, failure, /^E[A-Z_]+$/.test(code) ? `${words} (${code})` : words, hint?.(provider))
}

function wordsOf(code: string): SocketWords {
  if (Object.hasOwn(SOCKET, code)) return SOCKET[code]!
  if (code.startsWith('HPE_')) return NOT_HTTP
  return CERTIFICATE.test(code) ? UNTRUSTED : BROKEN
}

/** Shorter ones would blank out ordinary words. */
const SHORTEST = 6
const LONGEST_WORDS = 500
const SECRET_HEADER = /auth|key|token|secret|cookie|password/i

/** Returns the texts that logs and errors must not contain: the given secrets, and the values of secret headers. */
export function secretsOf(secrets: readonly string[], headers: Readonly<Record<string, string>>): readonly string[] {
  const carried = Object.entries(headers).flatMap(([name, value]) =>
    SECRET_HEADER.test(name) ? [value, value.replace(/^\S+\s+/, '')] : []
  )
  const all = [...secrets, ...carried].filter(secret => secret.length >= SHORTEST)
  // the longest first: one may be a part of another
  return [...new Set(all.flatMap(formsOf))].sort((a, b) => b.length - a.length)
}

const formsOf = (secret: string) => [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]

/** Redacts the text of an upstream: removes secrets, joins the lines and limits the length. */
export function createHide(secrets: readonly string[]): (text: string) => string {
  return text => {
    const clean = secrets.reduce((words, secret) => words.replaceAll(secret, '[secret]'), text)
    // oxlint-disable-next-line no-control-regex -- they are what must go
    const line = clean.replace(/[\u0000-\u001f\u007f-\u009f\s]+/g, ' ').trim()
    return line.length > LONGEST_WORDS ? `${line.slice(0, LONGEST_WORDS).toWellFormed()}…` : line
  }
}
