import { codeOf, messageOf, type SvcError, svcError } from '@svc/core'
import type { McpErrorClass, McpFailure } from '@svc/core/contracts'
import { stripResult } from '@svc/plugin-kit'

/** Details of a failed call besides its class. */
export interface FailureFacts {
  /** Whether the server received the call. `no` is certain. */
  readonly delivered?: 'no' | 'maybe' | 'yes'
  /** Code of the JSON-RPC error that the server returned. */
  readonly rpcCode?: number
  readonly cause?: unknown
}

const HINTS: Readonly<Record<McpErrorClass, string>> = {
  connection_refused: 'Check that the server runs: svc mcp test <name>',
  authentication_failed: 'Check the key, or log in: svc mcp login <name>',
  tool_not_found: 'List its tools: svc mcp tools <name>',
  timeout: 'Set a longer timeout, or request less',
  tool_error: 'Fix what the message of the tool names, and call it again',
  protocol_error: 'Check the server for protocol errors: svc mcp test <name>',
  cancelled: 'Call it again',
}
const RETRYABLE: ReadonlySet<McpErrorClass> = new Set(['connection_refused', 'timeout'])

/**
 * Creates the error MCP_CALL_FAILED. `text` must not contain credentials or local paths. The function removes hidden characters from it.
 */
export function callFailed(server: string, kind: McpErrorClass, text: string, facts: FailureFacts = {}): SvcError {
  const { delivered = 'maybe', rpcCode, cause } = facts
  const { text: message } = stripResult(text)
  return svcError('MCP_CALL_FAILED', `${server}: ${message}`, {
    details: {
      server,
      class: kind,
      message,
      // a repeated call could run twice if the server has received it
      retryable: delivered === 'no' && RETRYABLE.has(kind),
      delivered,
      ...(rpcCode !== undefined && { rpcCode }),
    },
    hint: HINTS[kind].replace('<name>', server),
    cause,
  })
}

/** Returns class and message of an error from `callFailed`. Any other error has the class `protocol_error`. */
export function failureOf(error: unknown): McpFailure {
  const details = (error as { details?: { class?: McpErrorClass; message?: string } } | undefined)?.details
  if (details?.class !== undefined && details.message !== undefined) return { class: details.class, message: details.message }
  return { class: 'protocol_error', message: error instanceof Error ? error.message : String(error) }
}

/** The failure for a tool that the server does not have. */
export const toolNotFound = (server: string, tool: string, facts: FailureFacts = {}): SvcError =>
  callFailed(server, 'tool_not_found', `it has no tool "${tool.slice(0, 128)}"`, facts)

/** The failure for an answer that the protocol does not allow. */
export const protocolError = (server: string, what: string): SvcError =>
  callFailed(server, 'protocol_error', what, { delivered: 'yes' })

type Delivered = NonNullable<FailureFacts['delivered']>

const MAX_LENGTH = 2_000
const cut = (text: string) => (text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH)}…`)

/** By error code: of svc, Node and the SDK. The first match counts. */
const BY_CODE: readonly (readonly [pattern: RegExp, kind: McpErrorClass, delivered: Delivered])[] = [
  [
    /^(HOST_UNKNOWN|ADDRESS_FORBIDDEN|CERTIFICATE_INVALID|URL_INVALID|CHILD_DEAF|SANDBOX_UNAVAILABLE|REDIRECT_REFUSED)$/,
    'connection_refused',
    'no',
  ],
  [/^(CONNECTION_FAILED|ECONN|EPIPE|ENOTFOUND|CONNECTION_CLOSED|NOT_CONNECTED|SEND_FAILED)/, 'connection_refused', 'maybe'],
  [/^(FETCH_TIMEOUT|REQUEST_TIMEOUT|TIMEOUT)$/, 'timeout', 'maybe'],
  [/^(CLIENT_HTTP_AUTHENTICATION|CLIENT_HTTP_FORBIDDEN|OAUTH_FAILED)$/, 'authentication_failed', 'no'],
  [/^(BODY_TOO_LARGE|BODY_INVALID|RESPONSE_INVALID)$/, 'protocol_error', 'yes'],
]
/** The SDK's errors where a login is not possible, for example at a server that wants a key and supports no login. */
const LOGIN_FAILED =
  /^(OAuth\w*|RegistrationRejected|IssuerMismatch|AuthorizationServerMismatch|InsufficientScope|InsecureTokenEndpoint)Error$/
/** Errors of the sandbox name a path of this machine: only the cause keeps it (`svc mcp test` shows it). */
const OF_SANDBOX = /^SANDBOX_(PATH|COMMAND)$/
/** Texts that say that no connection was made. */
const NEVER_CONNECTED = /ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|in time/

/** Turns any error into MCP_CALL_FAILED; one that is MCP_CALL_FAILED stays as it is. */
export function failed(server: string, error: unknown): SvcError {
  if (codeOf(error) === 'MCP_CALL_FAILED') return error as SvcError
  for (let one = error, depth = 0; one !== undefined && one !== null && depth < 5; one = (one as Error).cause, depth++) {
    const known = knownFailure(server, one)
    if (known !== undefined) return known
  }
  return callFailed(server, 'protocol_error', cut(messageOf(error)), { cause: error })
}

/** As `failed`, for an error before the server can have received a call. */
export function undelivered(server: string, error: unknown): SvcError {
  const known = failed(server, error)
  const { class: kind, message } = failureOf(known)
  return callFailed(server, kind, message, { delivered: 'no', cause: known.cause ?? known })
}

function knownFailure(server: string, error: unknown): SvcError | undefined {
  const code = codeOf(error) ?? ''
  const { name } = error as Error
  const undelivered = (kind: McpErrorClass, message: string) =>
    callFailed(server, kind, message, { delivered: 'no', cause: error })
  if (code === 'MCP_CALL_FAILED') return error as SvcError
  const http = httpFailure(server, error)
  if (http !== undefined) return http
  if (name === 'UnauthorizedError') return needsAuth(server, error)
  if (LOGIN_FAILED.test(name)) return undelivered('authentication_failed', cut(messageOf(error)))
  if (OF_SANDBOX.test(code))
    return undelivered(
      'connection_refused',
      `its sandbox cannot be created: a program or a path of its entry does not exist, or is protected; run "svc mcp test ${server}" to see which`
    )
  if (code === 'CHILD_NOT_STARTED') {
    // the message of the cause can name the sandbox program with its path
    const { reason } = (error as { details?: { reason?: string } }).details ?? {}
    return undelivered('connection_refused', `its command could not be started: ${reason}`)
  }
  const row = BY_CODE.find(([pattern]) => pattern.test(code))
  if (row === undefined) return undefined
  const [, kind, delivered] = row
  const message = cut(messageOf(error))
  return callFailed(server, kind, message, { delivered: NEVER_CONNECTED.test(message) ? 'no' : delivered, cause: error })
}

/** A status code where the protocol expects an answer. */
function httpFailure(server: string, error: unknown): SvcError | undefined {
  const { status, text } = ((error as { data?: unknown }).data ?? {}) as { status?: unknown; text?: unknown }
  if (typeof status !== 'number') return undefined
  const kind = status === 401 || status === 403 ? 'authentication_failed' : status < 500 ? 'protocol_error' : 'connection_refused'
  const body = typeof text === 'string' && text !== '' && !text.includes('<') ? `: ${cut(text.trim())}` : ''
  // a request that is refused for its session or its key was not executed
  const delivered = status === 401 || status === 403 || status === 404 ? 'no' : 'maybe'
  return callFailed(server, kind, `it answers HTTP ${status}${body}`, { delivered, cause: error })
}

/** The HTTP status of a failed request; 404 means that the server has forgotten the session. */
export const statusOf = (error: unknown): number | undefined =>
  (error as { cause?: { data?: { status?: number } } }).cause?.data?.status

/** The failure of a call that was not answered in `ms`. */
export const tooSlow = (server: string, ms: number, delivered: Delivered): SvcError =>
  callFailed(server, 'timeout', `it did not answer within ${ms / 1_000} s`, { delivered })

/** The failure of a call whose caller has aborted it: because of its own time limit of `ms`, or because it does not wait any longer. */
export function aborted(server: string, reason: unknown, ms: number, delivered: Delivered): SvcError {
  const isLate = codeOf(reason) === 'TIMEOUT' || (reason as Error | undefined)?.name === 'TimeoutError'
  return isLate ? tooSlow(server, ms, delivered) : callFailed(server, 'cancelled', 'the call was cancelled')
}

/** The failure for a server that a user has to log in to. */
export const needsAuth = (server: string, cause?: unknown): SvcError =>
  callFailed(server, 'authentication_failed', 'a user has to log in', { delivered: 'no', cause })

/** The failure of an answer to a question of the server that is no longer open. */
export const questionClosed = (server: string): SvcError =>
  callFailed(server, 'cancelled', 'its question is no longer open', { delivered: 'no' })
