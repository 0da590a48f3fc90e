import { codeOf, messageOf, svcError, type SvcError } from '@svc/core'
import { isWithinSize } from '@svc/core/internal'

const GONE_HINT = 'Read the log for the reason. Retry when the process runs again'
export const pluginGone = (plugin: string, why: string) =>
  svcError('PLUGIN_GONE', `the process of ${plugin} is gone: ${why}`, { plugin, details: { retryable: true }, hint: GONE_HINT })

const PLAIN_HINT = 'Pass only JSON values, undefined, bigint, Date and Uint8Array. Report progress as items of a stream'
export const notPlain = (plugin: string, cheat: string) =>
  svcError('NOT_PLAIN', cheat, { plugin, where: cheat.split(' ', 1)[0]!, hint: PLAIN_HINT })

export const cannotCross = (plugin: string, where: string, cause: unknown) =>
  svcError(codeOf(cause) ?? 'NOT_PLAIN', `${where} could not be sent: ${messageOf(cause)}`, {
    plugin,
    where,
    cause,
    hint: PLAIN_HINT,
  })

/** Names from the other side can have any length. */
const short = (word: string) => word.slice(0, 200)

export const nothingOffered = (plugin: string, path: string) =>
  svcError('NOT_OFFERED', `${plugin} offers nothing at "${short(path)}"`, {
    plugin,
    details: { path: short(path) },
    hint: 'Get the item from its slot again: its plugin has removed or replaced it',
  })

const TABLE_HINT = 'Use versions of both sides that were built for the same contract'
export const methodUnknown = (plugin: string, path: string, method: string) =>
  svcError('METHOD_UNKNOWN', `"${short(path)}" of ${plugin} has no method "${short(method)}"`, {
    plugin,
    details: { path: short(path), method: short(method) },
    hint: TABLE_HINT,
  })

export const contextMissing = (where: string) =>
  svcError('CONTEXT_MISSING', `${where} was called without its last argument, the call context`, {
    where,
    hint: 'Pass on the context that you received',
  })

export const deadlineExceeded = (where: string) =>
  svcError('TIMEOUT', `${where} did not end before its deadline`, {
    where,
    hint: 'Raise the time limit of the caller, or find out which step is slow',
  })

export const readerLeft = () => svcError('ABORTED', 'the reader left the stream')

export const frameTooLarge = (bytes: number, most: number) =>
  svcError('FRAME_TOO_LARGE', `a message of ${bytes} bytes exceeds the maximum of ${most}`, {
    details: { bytes, most },
    hint: 'Send it in pieces, as items of a stream',
  })

export const frameOverBudget = (bytes: number, why: string) =>
  svcError('FRAME_OVER_BUDGET', `a message of ${bytes} bytes exceeds its budget: ${why}`, {
    details: { bytes },
    hint: 'Send plain values (JSON, undefined, bigint, Date, Uint8Array), and large ones in pieces, as items of a stream',
  })

/**
 * Limits of what one side can occupy here at a time: pending calls, and bytes of arguments, of unread items and of expected
 * contracts (each).
 */
export interface ChannelLimits {
  readonly calls: number
  readonly bytes: number
}

export const askedTooMuch = (plugin: string, { calls, bytes }: ChannelLimits) =>
  svcError(
    'ASKED_TOO_MUCH',
    `${plugin} has more than ${calls} pending calls, or their arguments exceed ${bytes} bytes in total`,
    {
      plugin,
      details: { calls, bytes },
      hint: 'Wait for results before further calls',
    }
  )

export const unreadTooMuch = (plugin: string, bytes: number) =>
  svcError('UNREAD_TOO_MUCH', `the streams of ${plugin} hold more than ${bytes} bytes that their readers have not read yet`, {
    plugin,
    details: { bytes },
    hint: 'Read the streams faster, or let the plugin send smaller items or fewer streams at once',
  })

export const homeUnusable = (home: string, cause: unknown) =>
  svcError('HOME_UNUSABLE', `the svc home ${home} cannot be used: ${messageOf(cause)}`, {
    cause,
    hint: 'Set SVC_HOME to a folder that this user can write',
  })

export const serverNone = (where: string, port?: number) =>
  svcError('SERVER_NONE', `no running server was found${port === undefined ? '' : ` on port ${port}`}`, {
    where,
    hint: 'Start a server with svc serve, with the same SVC_HOME',
  })

export const serverAmbiguous = (where: string, ports: readonly number[]) =>
  svcError('SERVER_AMBIGUOUS', `${ports.length} servers run in this home, on the ports ${ports.join(', ')}`, {
    where,
    details: { ports },
    hint: `Choose one: --port ${ports[0]}`,
  })

export const contextForged = (plugin: string, principal: string, requestId: string) =>
  svcError(
    'CONTEXT_FORGED',
    `asks in the name of "${principal.slice(0, 100)}" (request ${requestId.slice(0, 100)}), which is not active`,
    {
      plugin,
      details: { principal: principal.slice(0, 100), requestId: requestId.slice(0, 100) },
      hint: 'Pass on the context of a call while that call runs. For own work, use systemContext(scope.signal)',
    }
  )

/** The part of an error that crosses. The stack crosses only from an isolated plugin to its host, for the log. */
export interface WireError {
  readonly code: string
  readonly message: string
  readonly details?: Record<string, unknown>
  readonly plugin?: string
  readonly where?: string
  readonly hint?: string
  readonly stack?: string
}

const LONGEST_TEXT = 10_000

/** Converts an error for the channel. An error without a code becomes INTERNAL_ERROR. */
export function toWire(error: unknown): WireError {
  return { code: codeOf(error) ?? 'INTERNAL_ERROR', message: messageOf(error).slice(0, LONGEST_TEXT), ...partsOf(error) }
}

/** The same with its stack. */
export function toWireWithStack(error: unknown): WireError {
  const { stack } = Object(error) as { stack?: unknown }
  return { ...toWire(error), ...(typeof stack === 'string' ? { stack: stack.slice(0, LONGEST_TEXT) } : {}) }
}

/** Converts the problems of an error that reports several, else the error itself. */
export function problemsToWire(error: unknown): WireError[] {
  const { problems } = Object(error) as { problems?: unknown }
  return (Array.isArray(problems) ? problems : [error]).map(toWire)
}

/**
 * Restores an error. The other side is untrusted: invalid parts are dropped, long ones truncated, and terminal control
 * characters removed.
 */
export function fromWire(wire: WireError): SvcError {
  const code = codeOf(wire) ?? ''
  const message: unknown = wire.message
  const { details = {}, ...texts } = partsOf(wire)
  const parts = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, readable(text)]))
  const error = svcError(CODE.test(code) ? code : 'INTERNAL_ERROR', typeof message === 'string' ? readable(message) : '', {
    ...parts,
    details: isWithinSize(details, LONGEST_DETAILS) ? details : shortened(details),
  })
  if (typeof wire.stack === 'string') error.stack = readable(wire.stack)
  return error
}

/** The first few short details. */
function shortened(details: Record<string, unknown>): Record<string, unknown> {
  const short = Object.entries(details)
    .slice(0, 50)
    .filter(entry => isWithinSize(entry, LONGEST_TEXT))
  return { ...Object.fromEntries(short), cut: true }
}

const CODE = /^[A-Za-z][\w.-]{0,99}$/
const LONGEST_DETAILS = 1_048_576
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\0-\x08\x0b-\x1f\x7f-\x9f]/g
const readable = (text: string) => text.slice(0, LONGEST_TEXT).replace(CONTROL, '')

function partsOf(error: unknown): Omit<WireError, 'code' | 'message'> {
  const { details, plugin, where, hint } = Object(error) as Partial<WireError>
  const texts = Object.entries({ plugin, where, hint }).filter(([, text]) => typeof text === 'string')
  return { ...(typeof details === 'object' && details !== null ? { details } : {}), ...Object.fromEntries(texts) }
}
