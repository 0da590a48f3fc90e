import { codeOf, messageOf, svcError, type SvcError } from '@svc/core'
import { isWithinSize } from '@svc/core/internal'

const GONE_HINT = 'the log tells why it ended; what it offered is back once it runs again'
export const pluginGone = (plugin: string, why: string) =>
  svcError('PLUGIN_GONE', `the process of ${plugin} is gone: ${why}`, { plugin, details: { retryable: true }, hint: GONE_HINT })

const PLAIN_HINT =
  'let only JSON values, undefined, bigint, Date and Uint8Array cross a contract; progress is an item of a stream'
export const notPlain = (plugin: string, cheat: string) =>
  svcError('NOT_PLAIN', cheat, { plugin, where: cheat.split(' ', 1)[0]!, hint: PLAIN_HINT })

export const cannotCross = (plugin: string, where: string, cause: unknown) =>
  svcError(codeOf(cause) ?? 'NOT_PLAIN', `${where} could not be sent: ${messageOf(cause)}`, {
    plugin,
    where,
    cause,
    hint: PLAIN_HINT,
  })

/** Of what the far side calls something: it may be of any length. */
const short = (word: string) => word.slice(0, 200)

export const nothingOffered = (plugin: string, path: string) =>
  svcError('NOT_OFFERED', `${plugin} offers nothing at "${short(path)}"`, {
    plugin,
    details: { path: short(path) },
    hint: 'it was taken back; look it up again',
  })

const TABLE_HINT = 'the two sides were built for different contracts, or one of them lies'
export const methodUnknown = (plugin: string, path: string, method: string) =>
  svcError('METHOD_UNKNOWN', `"${short(path)}" of ${plugin} has no method "${short(method)}"`, {
    plugin,
    details: { path: short(path), method: short(method) },
    hint: TABLE_HINT,
  })

export const contextMissing = (where: string) =>
  svcError('USE_MISSING', `${where} was called without its last argument, use`, { where, hint: 'hand on the use you were given' })

export const deadlineExceeded = (where: string) =>
  svcError('TIMEOUT', `${where} did not answer before its deadline`, {
    where,
    hint: 'raise the limit of the caller, or look at what is slow',
  })

export const readerLeft = () => svcError('ABORTED', 'the reader left the stream')

export const frameTooLarge = (bytes: number, most: number) =>
  svcError('FRAME_TOO_LARGE', `a message of ${bytes} bytes is larger than ${most}`, {
    details: { bytes, most },
    hint: 'send it in pieces, as items',
  })

export const frameOverBudget = (bytes: number, why: string) =>
  svcError('FRAME_OVER_BUDGET', `a message of ${bytes} bytes is more than it may be: ${why}`, {
    details: { bytes },
    hint: 'send plain values (JSON, undefined, bigint, Date, Uint8Array), large ones in pieces, as items of a stream',
  })

/** What a far side may make this one hold at a time: calls under way, and bytes of what it asks with, of items that nobody has read yet, and of forms that it expects (each of the three). */
export interface CallLimits {
  readonly calls: number
  readonly bytes: number
}

export const askedTooMuch = (plugin: string, { calls, bytes }: CallLimits) =>
  svcError('ASKED_TOO_MUCH', `${plugin} has more than ${calls} calls, or calls of more than ${bytes} bytes, under way at once`, {
    plugin,
    details: { calls, bytes },
    hint: 'wait for answers before asking on',
  })

export const unreadTooMuch = (plugin: string, bytes: number) =>
  svcError('UNREAD_TOO_MUCH', `more than ${bytes} bytes that ${plugin} streams wait to be read`, {
    plugin,
    details: { bytes },
    hint: 'stream smaller items, or fewer at once',
  })

export const homeUnusable = (home: string, cause: unknown) =>
  svcError('HOME_UNUSABLE', `the svc home ${home} cannot be used: ${messageOf(cause)}`, {
    cause,
    hint: 'SVC_HOME must name a folder that this user may write',
  })

export const serverNone = (where: string, port?: number) =>
  svcError('SERVER_NONE', `no running server was found${port === undefined ? '' : ` on port ${port}`}`, {
    where,
    hint: 'start one with svc serve; SVC_HOME must be the same for both',
  })

export const serverAmbiguous = (where: string, ports: readonly number[]) =>
  svcError('SERVER_AMBIGUOUS', `${ports.length} servers run in this home, on the ports ${ports.join(', ')}`, {
    where,
    details: { ports },
    hint: `say which: --port ${ports[0]}`,
  })

export const contextForged = (plugin: string, principal: string, requestId: string) =>
  svcError(
    'USE_FORGED',
    `asks in the name of "${principal.slice(0, 100)}" (request ${requestId.slice(0, 100)}), who is not waiting for it`,
    {
      plugin,
      details: { principal: principal.slice(0, 100), requestId: requestId.slice(0, 100) },
      hint: 'hand on the `use` that a call came with, while that call runs; own work goes with the signal of the scope as systemContext(scope.signal)',
    }
  )

/** What of an error crosses; its stack stays on its own side, in the log. */
export interface WireError {
  readonly code: string
  readonly message: string
  readonly details?: Record<string, unknown>
  readonly plugin?: string
  readonly where?: string
  readonly hint?: string
}

const LONGEST_TEXT = 10_000

/** An error as it crosses. One without a code becomes an INTERNAL_ERROR. */
export function toWire(error: unknown): WireError {
  return { code: codeOf(error) ?? 'INTERNAL_ERROR', message: messageOf(error).slice(0, LONGEST_TEXT), ...partsOf(error) }
}

/** The problems in an error that reports several, else the error itself, as they cross. */
export function problemsToWire(error: unknown): WireError[] {
  const { problems } = Object(error) as { problems?: unknown }
  return (Array.isArray(problems) ? problems : [error]).map(toWire)
}

/** The error that crossed. The far side may lie: what is not of the form is left out, what is too long cut, and nothing in it moves the cursor of a terminal. */
export function fromWire(wire: WireError): SvcError {
  const code = codeOf(wire) ?? ''
  const message: unknown = wire.message
  const { details = {}, ...texts } = partsOf(wire)
  const parts = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, readable(text)]))
  return svcError(CODE.test(code) ? code : 'INTERNAL_ERROR', typeof message === 'string' ? readable(message) : '', {
    ...parts,
    details: isWithinSize(details, LONGEST_DETAILS) ? details : shortened(details),
  })
}

/** The first few short ones. */
function shortened(details: Record<string, unknown>): Record<string, unknown> {
  const short = Object.entries(details)
    .slice(0, 50)
    .filter(one => isWithinSize(one, LONGEST_TEXT))
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
