import { codeOf, messageOf, type SvcError, svcError } from '../src/errors.ts'

const GONE_MEND = 'the log tells why it ended; what it offered is back once it runs again'
export const pluginGone = (plugin: string, why: string) =>
  svcError('PLUGIN_GONE', `the process of ${plugin} is gone: ${why}`, { plugin, details: { retryable: true }, mend: GONE_MEND })

const PLAIN_MEND =
  'let only JSON values, undefined, bigint, Date and Uint8Array cross a contract; progress is an item of a stream'
export const notPlain = (plugin: string, cheat: string) =>
  svcError('NOT_PLAIN', cheat, { plugin, where: cheat.split(' ', 1)[0]!, mend: PLAIN_MEND })

export const cannotCross = (plugin: string, where: string, cause: unknown) =>
  svcError(codeOf(cause) ?? 'NOT_PLAIN', `${where} could not be sent: ${messageOf(cause)}`, {
    plugin,
    where,
    cause,
    mend: PLAIN_MEND,
  })

export const nothingOffered = (plugin: string, path: string) =>
  svcError('NOT_OFFERED', `${plugin} offers nothing at "${path}"`, {
    plugin,
    details: { path },
    mend: 'it was taken back; look it up again',
  })

const TABLE_MEND = 'the two sides were built for different contracts, or one of them lies'
export const methodUnknown = (plugin: string, path: string, method: string) =>
  svcError('METHOD_UNKNOWN', `"${path}" of ${plugin} has no method "${method}"`, {
    plugin,
    details: { path, method },
    mend: TABLE_MEND,
  })

export const useMissing = (where: string) =>
  svcError('USE_MISSING', `${where} was called without its last argument, use`, { where, mend: 'hand on the use you were given' })

export const deadlineOver = (where: string) =>
  svcError('TIMEOUT', `${where} did not answer before its deadline`, {
    where,
    mend: 'raise the limit of the caller, or look at what is slow',
  })

export const readerLeft = () => svcError('ABORTED', 'the reader left the stream')

export const frameTooLarge = (bytes: number, most: number) =>
  svcError('FRAME_TOO_LARGE', `a message of ${bytes} bytes is larger than ${most}`, {
    details: { bytes, most },
    mend: 'send it in pieces, as items',
  })

export const homeUnusable = (home: string, cause: unknown) =>
  svcError('HOME_UNUSABLE', `the svc home ${home} cannot be used: ${messageOf(cause)}`, {
    cause,
    mend: 'SVC_HOME must name a folder that this user may write',
  })

export const serverNone = (where: string, port?: number) =>
  svcError('SERVER_NONE', `no running server was found${port === undefined ? '' : ` on port ${port}`}`, {
    where,
    mend: 'start one with svc serve; SVC_HOME must be the same for both',
  })

export const serverAmbiguous = (where: string, ports: readonly number[]) =>
  svcError('SERVER_AMBIGUOUS', `${ports.length} servers run in this home, on the ports ${ports.join(', ')}`, {
    where,
    details: { ports },
    mend: `say which: --port ${ports[0]}`,
  })

export const useForged = (plugin: string, principal: string, requestId: string) =>
  svcError(
    'USE_FORGED',
    `asks in the name of "${principal.slice(0, 100)}" (request ${requestId.slice(0, 100)}), who is not waiting for it`,
    {
      plugin,
      details: { principal: principal.slice(0, 100), requestId: requestId.slice(0, 100) },
      mend: 'hand on the `use` that a call came with, while that call runs; own work goes with the signal of the scope as systemUse(scope.signal)',
    }
  )

/** What of an error crosses; its stack stays on its own side, in the log. */
export interface WireError {
  readonly code: string
  readonly message: string
  readonly details?: Record<string, unknown>
  readonly plugin?: string
  readonly where?: string
  readonly mend?: string
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

/** The error that crossed. The far side may lie: what is not of the form is left out. */
export function fromWire(wire: WireError): SvcError {
  return svcError(codeOf(wire) ?? 'INTERNAL_ERROR', String(wire.message), partsOf(wire))
}

function partsOf(error: unknown): Omit<WireError, 'code' | 'message'> {
  const { details, plugin, where, mend } = Object(error) as Partial<WireError>
  const texts = Object.entries({ plugin, where, mend }).filter(([, text]) => typeof text === 'string')
  return { ...(typeof details === 'object' && details !== null ? { details } : {}), ...Object.fromEntries(texts) }
}
