import { codeOf, type SvcError, svcError } from '@svc/core'
import type { ModelFailure, ModelFailureKind } from '@svc/core/contracts'

/** The kinds of failure for which the same call can succeed later. */
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

/** A failure. Without `retryable`, its kind decides. */
export type FailureDetails = Omit<ModelFailure, 'retryable'> & { readonly retryable?: boolean }

/** Creates the MODEL_FAILED error of a model call; its details are the failure. */
export function modelFailure(provider: string, failure: FailureDetails, message: string, hint?: string): SvcError {
  const details = { retryable: RETRYABLE[failure.kind], ...failure }
  return svcError('MODEL_FAILED', `${provider}: ${message}`, { details, ...(hint === undefined ? {} : { hint }) })
}

/** The kind of failure by HTTP status. */
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

/** Reads the error body of one protocol. The HTTP status decides the fields that it leaves out. */
export type ReadFailure = (status: number, body: unknown) => Partial<ModelFailure> & { readonly message?: string }

export interface RefusedAnswer {
  readonly provider: string
  readonly status: number
  /** The parsed JSON, or the text if it is not valid JSON. */
  readonly body: unknown
  readonly retryAfterMs?: number
}

/** Converts an answer with an error in it to a failure. `status` 200: the error is inside a stream or a successful answer. */
export function answerFailure(answer: RefusedAnswer, read: ReadFailure | undefined, hide: (text: string) => string): SvcError {
  const { provider, status, body, retryAfterMs } = answer
  const { message = messageIn(body), ...reported } = read?.(status, body) ?? {}
  const sizes = (reported.kind ?? KINDS[status] ?? 'bad_request') === 'rate_limited' ? undefined : contextSizes(message)
  const kind = reported.kind ?? (sizes ? 'context_too_long' : kindOf(status))
  const failure = {
    ...(status >= 400 ? { upstreamStatus: status } : {}),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(kind === 'context_too_long' ? sizes : {}),
    ...reported,
    kind,
  }
  const words = status >= 400 ? `the upstream answered ${status}` : 'the upstream reported an error'
  return modelFailure(provider, failure, message === '' ? words : `${words}: ${hide(message)}`, hintOf(provider, kind))
}

const kindOf = (status: number): ModelFailureKind =>
  KINDS[status] ?? (status >= 500 ? 'overloaded' : status >= 400 ? 'bad_request' : 'overloaded')

const hintOf = (provider: string, kind: ModelFailureKind): string | undefined =>
  kind === 'authentication'
    ? `Check that the key of providers.${provider} is valid and can use this model`
    : kind === 'context_too_long'
      ? 'Shorten the message, or use a model with a longer context'
      : undefined

/** The message of an error body in one of the common forms; empty for any other body, such as a web page. */
function messageIn(body: unknown): string {
  if (typeof body !== 'object' || body === null) return ''
  const { error, message, detail } = body as { error?: unknown; message?: unknown; detail?: unknown }
  const inner = (error as { message?: unknown } | null | undefined)?.message
  return [inner, error, message, detail].find(text => typeof text === 'string') ?? ''
}

/** True if a body contains an error: an object with `error`, or a list that begins with such an object. */
export function hasError(body: unknown): boolean {
  const first: unknown = Array.isArray(body) ? body[0] : body
  const { error } = (typeof first === 'object' && first !== null ? first : {}) as { error?: unknown }
  return error !== undefined && error !== null
}

export const malformed = (provider: string): SvcError =>
  modelFailure(provider, { kind: 'network' }, 'the upstream sent data that cannot be read')

export const cutShort = (provider: string): SvcError =>
  modelFailure(provider, { kind: 'network' }, 'the upstream ended its answer early')

export const tooLarge = (provider: string, what: string): SvcError =>
  modelFailure(provider, { kind: 'network', retryable: false }, `the upstream sent ${what}`)

export const jsonLate = (provider: string, ms: number): SvcError =>
  modelFailure(provider, { kind: 'timeout' }, `the upstream did not answer within ${ms} ms`)

export const redirected = (provider: string, status: number): SvcError =>
  modelFailure(
    provider,
    { kind: 'bad_request', upstreamStatus: status },
    `the upstream answered with a redirect (${status}); svc does not follow redirects`,
    `Set providers.${provider}.base_url to the address that the redirect names`
  )

export const noEvents = (provider: string, type: string): SvcError =>
  modelFailure(
    provider,
    { kind: 'bad_request' },
    `the upstream answered with ${type}, which its protocol does not allow`,
    `Check providers.${provider}.base_url: another service can be at this address`
  )

/** Messages of upstreams about a request that is longer than the model's context. */
const WORDS =
  /context[ _](length|window|size)|maximum context|too many (input )?tokens|prompt is too long|input (is )?too long|(exceeds?|longer than).{0,40}(context|number of tokens|token limit)/i
const LIMITS = [/maximum context length (?:is|of) (\d+)/i, /> (\d+) maximum/i, /tokens allowed \((\d+)\)/i, /n_ctx["' :=]+(\d+)/i]
const COUNTS = [
  /(?:resulted in|requested(?: about)?) (\d+) tokens/i,
  /(\d+) tokens > \d+/i,
  /token count \((\d+)\)/i,
  /n_prompt_tokens["' :=]+(\d+)/i,
]

/** The allowed and the counted tokens in a message about a context that is too long; `undefined` for any other message. */
function contextSizes(message: string): Pick<ModelFailure, 'limit' | 'count'> | undefined {
  if (!WORDS.test(message)) return undefined
  const [limit, count] = [first(LIMITS, message), first(COUNTS, message)]
  return { ...(limit === undefined ? {} : { limit }), ...(count === undefined ? {} : { count }) }
}

function first(patterns: readonly RegExp[], message: string): number | undefined {
  for (const pattern of patterns) {
    const digits = pattern.exec(message)?.[1]
    if (digits !== undefined && Number.isSafeInteger(Number(digits))) return Number(digits)
  }
  return undefined
}

interface SocketWords {
  readonly words: string
  readonly hint?: (provider: string) => string
  readonly failure?: FailureDetails
}

const BASE_URL = (provider: string) => `Start the server at providers.${provider}.base_url, or correct the address`
const HOST_NAME = (provider: string) => `Check providers.${provider}.base_url and the network`
const NOT_HTTP: SocketWords = { words: 'the upstream sent data that is not HTTP', hint: BASE_URL }
const BROKEN: SocketWords = { words: 'the connection to the upstream broke' }
const UNREACHABLE: SocketWords = { words: 'the upstream cannot be reached', hint: HOST_NAME }
const LATE: SocketWords = { words: 'the upstream did not answer in time', failure: { kind: 'timeout' } }
const CLOSED: SocketWords = { words: 'the provider was closed', failure: { kind: 'network', retryable: false } }

const SOCKET: Readonly<Record<string, SocketWords>> = {
  ECONNREFUSED: { words: 'the upstream refused the connection', hint: BASE_URL },
  ENOTFOUND: { words: 'the host of the upstream cannot be found', hint: HOST_NAME },
  EAI_AGAIN: { words: 'the name server did not resolve the host of the upstream', hint: HOST_NAME },
  EHOSTUNREACH: UNREACHABLE,
  ENETUNREACH: UNREACHABLE,
  ETIMEDOUT: { ...LATE, hint: HOST_NAME },
  UND_ERR_CONNECT_TIMEOUT: { ...LATE, words: 'the upstream did not accept a connection in time', hint: HOST_NAME },
  UND_ERR_HEADERS_TIMEOUT: LATE,
  UND_ERR_BODY_TIMEOUT: LATE,
  UND_ERR_HEADERS_OVERFLOW: NOT_HTTP,
  UND_ERR_DESTROYED: CLOSED,
  UND_ERR_CLOSED: CLOSED,
  PROVIDER_CLOSED: CLOSED,
}

const CERTIFICATE = /^(CERT_|ERR_TLS_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|ERR_SSL_|HOSTNAME_MISMATCH)/
const UNTRUSTED: SocketWords = {
  words: 'the TLS certificate of the upstream is not trusted',
  hint: provider => `Check providers.${provider}.base_url, or set NODE_EXTRA_CA_CERTS=<file> to trust its certificate`,
  failure: { kind: 'network', retryable: false },
}

/** Errors of Node and undici about the arguments of a call or a missing module. No upstream can cause them. */
const MISTAKES =
  /^(UND_ERR_(INVALID_ARG|NOT_SUPPORTED|INVALID_RETURN_VALUE|REQ_CONTENT_LENGTH_MISMATCH)|(ERR_)?MODULE_NOT_FOUND|ERR_(INVALID_(ARG_TYPE|ARG_VALUE|CHAR|THIS|URL)|HTTP_INVALID_HEADER_VALUE|PACKAGE_PATH_NOT_EXPORTED|REQUIRE_ESM|UNSUPPORTED_DIR_IMPORT|DLOPEN_FAILED))$/

/** Whether an error shows a mistake in code: no connection and no data of an upstream would raise it in correct code. */
export function isMistake(error: unknown): boolean {
  const code = codeOf(error)
  if (code !== undefined) return MISTAKES.test(code)
  return [TypeError, ReferenceError, RangeError, URIError].some(one => error instanceof one)
}

/** Reports a mistake in code with its place. It is not MODEL_FAILED: svc logs it, and neither retries nor blames the network. */
export function providerBroken(provider: string, error: unknown, hide: (text: string) => string = text => text): SvcError {
  const { name, message, stack = '' } = error as Error
  const at = stack.split('\n').find(line => /^\s+at .*file:/.test(line) && !line.includes('/node_modules/undici/'))
  const [place] = /[^/\s(]+:\d+(?=:\d+\)?$)/.exec(at ?? '') ?? []
  return svcError('PROVIDER_BROKEN', `${provider}: the code of the provider failed: ${name}: ${hide(message)}`, {
    cause: error,
    ...(place === undefined ? {} : { where: place }),
    hint: 'Fix the code of the provider. If the upstream sent data that its protocol does not allow, throw malformed(provider)',
  })
}

/**
 * Converts a connection error to a failure. The text contains no address, because callers see it. A mistake in code is no
 * connection error: it becomes PROVIDER_BROKEN.
 */
export function socketFailure(provider: string, error: unknown): SvcError {
  if (isMistake(error)) return providerBroken(provider, error)
  const code = codeOf(error) ?? codeOf((error as { errors?: unknown[] } | undefined)?.errors?.[0]) ?? ''
  const { words, hint, failure = { kind: 'network' } } = wordsOf(code)
  return modelFailure(provider, failure, /^E[A-Z_]+$/.test(code) ? `${words} (${code})` : words, hint?.(provider))
}

function wordsOf(code: string): SocketWords {
  if (Object.hasOwn(SOCKET, code)) return SOCKET[code]!
  if (code.startsWith('HPE_')) return NOT_HTTP
  return CERTIFICATE.test(code) ? UNTRUSTED : BROKEN
}

/** Redacting shorter secrets would remove ordinary words. */
const SHORTEST = 6
const LONGEST_WORDS = 500
const SECRET_HEADER = /auth|key|token|secret|cookie|password/i

/** Returns the texts that logs and errors must not contain: the given secrets, and the values of secret headers. */
export function secretsOf(secrets: readonly string[], headers: Readonly<Record<string, string>>): readonly string[] {
  const carried = Object.entries(headers).flatMap(([name, value]) =>
    SECRET_HEADER.test(name) ? [value, value.replace(/^\S+\s+/, '')] : []
  )
  const all = [...secrets, ...carried].filter(secret => secret.length >= SHORTEST)
  // The longest first, because a secret can contain another.
  return [...new Set(all.flatMap(formsOf))].sort((a, b) => b.length - a.length)
}

const formsOf = (secret: string) => [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]

const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((words, secret) => words.replaceAll(secret, '[secret]'), text)

/** Redacts the text of an upstream: removes secrets, joins the lines and limits the length. */
export function createHide(secrets: readonly string[]): (text: string) => string {
  return text => {
    const clean = withoutSecrets(text, secrets)
    // oxlint-disable-next-line no-control-regex -- the pattern removes control characters
    const line = clean.replace(/[\u0000-\u001f\u007f-\u009f\s]+/g, ' ').trim()
    return line.length > LONGEST_WORDS ? `${line.slice(0, LONGEST_WORDS).toWellFormed()}…` : line
  }
}

const FORM = 'application/x-www-form-urlencoded'
/** Form fields with a credential. */
const SECRET_FIELDS = ['client_secret', 'code', 'code_verifier', 'refresh_token', 'client_assertion']

/**
 * Removes the credentials of a request from an error response: its text goes into logs, health and answers. `headers` and `body` are
 * those of the request. Does not change a token response.
 */
export async function withoutCredentials(response: Response, headers: Headers, body: unknown): Promise<Response> {
  const isForm = (headers.get('content-type') ?? '').startsWith(FORM)
  if (response.body === null || (response.status < 400 && !isForm)) return response
  const form = new URLSearchParams(isForm ? String(body) : '')
  const [, basic = ''] = /^basic (.*)/is.exec(headers.get('authorization') ?? '') ?? []
  const inHeader = Buffer.from(basic, 'base64').toString().split(':').slice(1)
  const fields = [...inHeader, ...inHeader.map(decoded), ...SECRET_FIELDS.map(name => form.get(name) ?? '')]
  const text = await response.text()
  const isToken = response.status < 400 && /"access_token"\s*:/.test(text)
  const secrets = isToken ? [] : secretsOf(fields, Object.fromEntries(headers))
  return new Response(withoutSecrets(text, secrets), { status: response.status, headers: response.headers })
}

const decoded = (text: string) => new URLSearchParams(`v=${text}`).get('v') ?? text
