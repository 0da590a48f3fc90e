import { codeOf, messageOf, type SvcError } from '@svc/core'
import type { McpErrorClass } from '@svc/core/contracts'
import { callFailed, type FailureFacts, failureOf } from '@svc/mcp-protocol'

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
  if (name === 'UnauthorizedError') return undelivered('authentication_failed', LOGIN_REQUIRED)
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

const LOGIN_REQUIRED = 'a user has to log in'

export const tooSlow = (server: string, ms: number, delivered: Delivered): SvcError =>
  callFailed(server, 'timeout', `it did not answer within ${ms / 1_000} s`, { delivered })

/** The failure of a call whose caller has aborted it: because of its own time limit of `ms`, or because it does not wait any longer. */
export function aborted(server: string, reason: unknown, ms: number, delivered: Delivered): SvcError {
  const isLate = codeOf(reason) === 'TIMEOUT' || (reason as Error | undefined)?.name === 'TimeoutError'
  return isLate ? tooSlow(server, ms, delivered) : callFailed(server, 'cancelled', 'the call was cancelled')
}

export const tooLarge = (server: string, bytes: number): SvcError =>
  callFailed(server, 'protocol_error', `it answers with more than ${bytes} bytes`, { delivered: 'yes' })
export const notConnected = (server: string, why: string, delivered: Delivered = 'no'): SvcError =>
  callFailed(server, 'connection_refused', why, { delivered })
export const needsAuth = (server: string): SvcError =>
  callFailed(server, 'authentication_failed', LOGIN_REQUIRED, { delivered: 'no' })
export const noResult = (server: string): SvcError => callFailed(server, 'cancelled', 'the call ended without an answer')
export const questionClosed = (server: string): SvcError =>
  callFailed(server, 'cancelled', 'its question is no longer open', { delivered: 'no' })
export const serverDisabled = (server: string): SvcError =>
  callFailed(server, 'connection_refused', `it is disabled; run svc mcp enable ${server}`, { delivered: 'no' })
export const noOwner = (server: string): SvcError =>
  callFailed(server, 'connection_refused', 'no worker of this service owns its connection', { delivered: 'no' })
