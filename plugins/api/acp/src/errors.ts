import { RequestError } from '@agentclientprotocol/sdk'
import { codeOf, messageOf, redactText, type SvcError, svcError } from '@svc/core'

/** Codes of JSON-RPC and ACP. */
const INVALID_REQUEST = -32_600
const INTERNAL = -32_603

// Errors for the editor

export const sessionUnknown = (sessionId: string) => RequestError.sessionNotFound(sessionId)

export const paramInvalid = (field: string, reason: string) => RequestError.invalidParams({ field, reason }, `${field} ${reason}`)

export const promptRunning = (sessionId: string) =>
  new RequestError(INVALID_REQUEST, 'Invalid request: a prompt of this session is running; cancel it, or wait for its end', {
    sessionId,
  })

export const tooManySessions = (limit: number) =>
  new RequestError(INVALID_REQUEST, `Invalid request: ${limit} sessions are open; close one`, { limit })

/** An error of svc for the editor: code, details and hint are in `data`. */
export function requestErrorOf(error: unknown, sessionId: string): RequestError {
  if (error instanceof RequestError) return error
  const code = codeOf(error) ?? 'INTERNAL_ERROR'
  if (code === 'CONVERSATION_UNKNOWN') return sessionUnknown(sessionId)
  const { details, hint } = Object(error) as Partial<SvcError>
  const message = redactText(messageOf(error))
  const data = { code, ...(details === undefined ? {} : { details }), ...(hint === undefined ? {} : { hint }) }
  return code === 'INVALID_VALUE' ? RequestError.invalidParams(data, message) : new RequestError(INTERNAL, message, data)
}

// Errors for the model

export const notInSession = () =>
  svcError('EDITOR_MISSING', 'this tool works only in a session of an editor', {
    hint: 'Use another tool',
  })

export const editorCannot = (what: string) =>
  svcError('EDITOR_MISSING', `the editor of this session does not offer ${what}`, { hint: 'Use another tool' })

export const editorFailed = (what: string, error: unknown) =>
  svcError('EDITOR_FAILED', `the editor could not ${what}: ${messageOf(error).slice(0, 1_000)}`, { cause: error })

export const editorAnswerInvalid = (what: string) =>
  svcError('EDITOR_FAILED', `the editor could not ${what}: its answer is invalid`)

export const terminalUnknown = (id: string) =>
  svcError('TERMINAL_UNKNOWN', `there is no running command "${id.slice(0, 100)}" in this session`, {
    hint: 'Start one with editor_run_command',
  })

export const terminalsFull = (limit: number) =>
  svcError('TERMINALS_FULL', `${limit} commands of this session are running`, {
    hint: 'Stop one with editor_stop_command',
  })

export const serverSilent = (tool: string) => svcError('EDITOR_FAILED', `the MCP server of "${tool}" returned no result`)

// Errors of the start

export const nameUnknown = (what: 'profile' | 'mode', name: string, known: readonly string[]) =>
  svcError('CONFIG_INVALID', `acp.${what}: there is no ${what} "${name}"`, {
    hint: `Use one of: ${known.join(', ')}`,
  })
