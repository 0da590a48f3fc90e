import { codeOf, messageOf, type SvcError } from '@svc/core'
import type { McpErrorClass } from '@svc/core/contracts'
import { callFailed, type FailureFacts, RPC } from '@svc/mcp'

const LONGEST = 2_000
const cut = (text: string) => (text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`)

type Row = readonly [pattern: RegExp, kind: McpErrorClass, delivered: NonNullable<FailureFacts['delivered']>]

/** By code: of our own errors, Node's, and the SDK's. The first that fits counts. */
const BY_CODE: readonly Row[] = [
  [
    /^(HOST_UNKNOWN|ADDRESS_FORBIDDEN|CERTIFICATE_INVALID|URL_INVALID|CHILD_DEAF|SANDBOX_UNAVAILABLE|REDIRECT_REFUSED)$/,
    'connection_refused',
    'no',
  ],
  [/^(CONNECTION_FAILED|ECONN|EPIPE|ENOTFOUND|CONNECTION_CLOSED|NOT_CONNECTED|SEND_FAILED)/, 'connection_refused', 'maybe'],
  [/^(FETCH_TIMEOUT|REQUEST_TIMEOUT)$/, 'timeout', 'maybe'],
  [/^(CLIENT_HTTP_AUTHENTICATION|CLIENT_HTTP_FORBIDDEN|OAUTH_FAILED)$/, 'authentication_failed', 'no'],
  [/^(BODY_TOO_LARGE|BODY_INVALID|RESPONSE_INVALID)$/, 'protocol_error', 'yes'],
]
/** What the SDK throws where logging in does not come about: of a server that wants a key, say, and knows no login. */
const LOGIN_FAILED =
  /^(OAuth\w*|RegistrationRejected|IssuerMismatch|AuthorizationServerMismatch|InsufficientScope|InsecureTokenEndpoint)Error$/
/** The sandbox tells them with a path of this machine: that is for whoever looks at the cause (`svc mcp test`). */
const OF_SANDBOX = /^SANDBOX_(PATH|COMMAND)$/
/** What says that no connection came about at all. */
const NEVER_CONNECTED = /ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|in time/

/** An error MCP_CALL_FAILED of whatever was thrown; one that is one already stays as it is. */
export function failed(server: string, error: unknown): SvcError {
  if (codeOf(error) === 'MCP_CALL_FAILED') return error as SvcError
  for (let one = error, depth = 0; one !== undefined && one !== null && depth < 5; one = (one as Error).cause, depth++) {
    const found = known(server, one)
    if (found !== undefined) return found
  }
  return callFailed(server, 'protocol_error', cut(messageOf(error)), { cause: error })
}

function known(server: string, error: unknown): SvcError | undefined {
  if (codeOf(error) === 'MCP_CALL_FAILED') return error as SvcError
  const http = httpFailure(server, error)
  if (http !== undefined) return http
  if ((error as Error).name === 'UnauthorizedError')
    return callFailed(server, 'authentication_failed', 'somebody has to log in', { delivered: 'no', cause: error })
  if (LOGIN_FAILED.test((error as Error).name))
    return callFailed(server, 'authentication_failed', cut(messageOf(error)), { delivered: 'no', cause: error })
  if (OF_SANDBOX.test(codeOf(error) ?? ''))
    return callFailed(server, 'connection_refused', `${NOT_SHOWN}; "svc mcp test ${server}" shows which`, {
      delivered: 'no',
      cause: error,
    })
  if (codeOf(error) === 'CHILD_NOT_STARTED')
    return callFailed(server, 'connection_refused', `${NOT_STARTED}: ${reasonOf(error)}`, { delivered: 'no', cause: error })
  const row = BY_CODE.find(([pattern]) => pattern.test(codeOf(error) ?? ''))
  if (row === undefined) return undefined
  const [, kind, delivered] = row
  const message = cut(messageOf(error))
  return callFailed(server, kind, message, { delivered: NEVER_CONNECTED.test(message) ? 'no' : delivered, cause: error })
}

const NOT_SHOWN = 'its sandbox cannot be made: it names a program or a path that is not there, or may not be shown'

/** What is started may be the sandbox around it, and its path is not told: its entry has it. */
const NOT_STARTED = 'its command could not be started'
const reasonOf = (error: unknown) => (error as { details?: { reason?: string } }).details?.reason

/** A status that is no answer of the protocol. */
function httpFailure(server: string, error: unknown): SvcError | undefined {
  const { status, text } = ((error as { data?: unknown }).data ?? {}) as { status?: unknown; text?: unknown }
  if (typeof status !== 'number') return undefined
  const kind = status === 401 || status === 403 ? 'authentication_failed' : status < 500 ? 'protocol_error' : 'connection_refused'
  const said = typeof text === 'string' && text !== '' && !text.includes('<') ? `: ${cut(text.trim())}` : ''
  // what a server refuses for its session or its key was not carried out
  return callFailed(server, kind, `it answers HTTP ${status}${said}`, {
    delivered: status === 401 || status === 403 || status === 404 ? 'no' : 'maybe',
    cause: error,
  })
}

/** The status of HTTP that a request failed with; 404 says that the server has forgotten the session. */
export const statusOf = (error: unknown): number | undefined =>
  (error as { cause?: { data?: { status?: number } } }).cause?.data?.status

const UNKNOWN_TOOL = /unknown tool|tool .{0,200}(not found|does not exist|unknown)|no (such )?tool/is
const V1_ERROR = /^MCP error -32602: /

/** The error that JSON-RPC answers. */
export interface RpcError {
  readonly code: number
  readonly message: string
}

/** JSON-RPC's error to a call. */
export function refused(server: string, tool: string, { code, message }: RpcError): SvcError {
  const facts = { delivered: 'yes', rpcCode: code } as const
  if (code === RPC.invalidParams && isUnknownTool(message)) return toolNotFound(server, tool, facts)
  const kind = code === RPC.methodUnknown || code === RPC.parse || code === RPC.invalidRequest ? 'protocol_error' : 'tool_error'
  return callFailed(server, kind, cut(String(message)), facts)
}

const isUnknownTool = (message: unknown) => UNKNOWN_TOOL.test(String(message).slice(0, LONGEST))

/** Whether the text of a failed result is the way in which servers of the SDK's first line say that there is no such tool. */
export const saysUnknownTool = (text: string): boolean => V1_ERROR.test(text) && isUnknownTool(text)

export const toolNotFound = (server: string, tool: string, facts: FailureFacts = {}): SvcError =>
  callFailed(server, 'tool_not_found', `it has no tool "${tool.slice(0, 128)}"`, facts)

export const cancelled = (server: string): SvcError => callFailed(server, 'cancelled', 'the call was cancelled')
export const tooSlow = (server: string, ms: number): SvcError =>
  callFailed(server, 'timeout', `it did not answer within ${ms / 1_000} s`)
export const tooLarge = (server: string, bytes: number): SvcError =>
  callFailed(server, 'protocol_error', `it answers with more than ${bytes} bytes`, { delivered: 'yes' })
export const protocolError = (server: string, what: string): SvcError =>
  callFailed(server, 'protocol_error', what, { delivered: 'yes' })
export const notConnected = (server: string, why: string, delivered: FailureFacts['delivered'] = 'no'): SvcError =>
  callFailed(server, 'connection_refused', why, { delivered })
export const needsAuth = (server: string): SvcError =>
  callFailed(server, 'authentication_failed', 'somebody has to log in', { delivered: 'no' })
export const noLastWord = (server: string): SvcError => callFailed(server, 'cancelled', 'the call ended without an answer')

export const switchedOff = (server: string) =>
  callFailed(server, 'connection_refused', `it is switched off: svc mcp enable ${server}`, { delivered: 'no' })

export const ownerless = (server: string) =>
  callFailed(server, 'connection_refused', 'no worker of this service has its connection', { delivered: 'no' })
