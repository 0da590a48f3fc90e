import { type SvcError, svcError } from '@svc/core'
import type { GuestFailure } from './messages.ts'

type Maker = (message: string) => SvcError

const timeout: Maker = message =>
  svcError('SANDBOX_TIMEOUT', `the code was stopped: ${message}`, {
    details: { reason: 'timeout' },
    hint: 'Split the work into smaller parts, or raise the time limit of the sandbox',
  })
const memory: Maker = message =>
  svcError('SANDBOX_MEMORY_LIMIT', `the code was stopped: it exceeded its limit of memory or stack (${message})`, {
    details: { reason: 'memory_limit' },
    hint: 'Keep less data at once, or raise the memory limit of the sandbox',
  })
const blocked: Maker = message =>
  svcError('SANDBOX_BLOCKED', message, {
    details: { reason: 'blocked' },
    hint: 'Use plain JavaScript. Network and files exist only if the operator allows them',
  })
const failed: Maker = message => svcError('SANDBOX_FAILED', message, { details: { reason: message } })

const MAKERS: Readonly<Record<GuestFailure['kind'], Maker>> = { timeout, memory, blocked, failed }

/** The failure of a guest. */
export const guestFailed = ({ kind, message }: GuestFailure): SvcError => MAKERS[kind](message)

/** The thread exceeded all limits, and the service ended it. */
export const overrun = (ms: number): SvcError => timeout(`it did not end within ${ms} ms`)

/** The thread itself, outside the engine, has no memory left. */
export const threadMemory = (): SvcError => memory('its thread has no memory left')

/** The same failure with the code that callers of a tool expect. */
export const callTimedOut = ({ message, details }: SvcError): SvcError =>
  svcError('TIMEOUT', message, { details, hint: 'Split the work into smaller parts' })

export const threadLost = (why: string): SvcError =>
  svcError('SANDBOX_FAILED', `the thread that ran the code ended: ${why}`, {
    details: { reason: 'the sandbox stopped' },
    hint: 'Run the code again. If it fails again, process less data at once',
  })

export const sandboxClosed = (): SvcError =>
  svcError('SANDBOX_CLOSED', 'the sandbox was closed', { hint: 'Do not run code after the server starts to close' })

export const limitInvalid = (field: string, why: string): SvcError =>
  svcError('INVALID_VALUE', `${field} ${why}`, { details: { field, reason: why } })

export const inputTooLarge = (what: string, most: number): SvcError =>
  svcError('INVALID_VALUE', `${what} has more than ${most} characters`, { details: { field: what, reason: 'too large' } })

/** A request of a guest that is not allowed. The guest gets the message. */
export const refused = (why: string): SvcError => svcError('REFUSED', why)

export const slotUnknown = (plugin: string, slot: string, known: readonly string[]): SvcError =>
  svcError('RUNTIME_SLOT', `its module exports "${slot}"; the runtime quickjs supports only ${known.join(', ')}`, {
    plugin,
    details: { slot, known },
    hint: 'Export supported slots only, or run the plugin without "runtime"',
  })

export const exportsInvalid = (plugin: string): SvcError =>
  svcError('RUNTIME_EXPORTS', 'the exports of its module cannot be read', {
    plugin,
    hint: 'Write: export const tools = { name: { description, effects, parameters, call } }. See docs/explanation/sandboxes.md',
  })

export const itemInvalid = (plugin: string, name: string, why: string): SvcError =>
  svcError('RUNTIME_ITEM', `its module exports "${name}", ${why}`, {
    plugin,
    details: { name },
    hint: 'Give each tool a description, effects, parameters and call. See docs/explanation/sandboxes.md',
  })
