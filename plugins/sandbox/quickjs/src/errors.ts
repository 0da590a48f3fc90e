import { type SvcError, svcError } from '@svc/core'
import type { GuestFailure } from './messages.ts'

type Maker = (message: string) => SvcError

const timeout: Maker = message =>
  svcError('SANDBOX_TIMEOUT', `the code was stopped: ${message}`, {
    details: { reason: 'timeout' },
    hint: 'give it less to do, or raise the time limit of the sandbox',
  })
const memory: Maker = message =>
  svcError('SANDBOX_MEMORY_LIMIT', `the code was stopped: it needs more memory or a deeper stack than it may have (${message})`, {
    details: { reason: 'memory_limit' },
    hint: 'hold less at once, or raise the memory limit of the sandbox',
  })
const blocked: Maker = message =>
  svcError('SANDBOX_BLOCKED', message, {
    details: { reason: 'blocked' },
    hint: 'use plain JavaScript; network and files are there only where the operator allows them',
  })
const failed: Maker = message => svcError('SANDBOX_FAILED', message, { details: { reason: message } })

const MAKERS: Readonly<Record<GuestFailure['kind'], Maker>> = { timeout, memory, blocked, failed }

/** What went wrong in a guest. */
export const guestFailed = ({ kind, message }: GuestFailure): SvcError => MAKERS[kind](message)

/** The thread ran past all its limits and was ended. */
export const overrun = (ms: number): SvcError => timeout(`it did not end within ${ms} ms`)

/** The memory of the thread itself, outside of the engine's. */
export const threadMemory = (): SvcError => memory('its thread ran out')

/** The word that the caller of a tool knows for it. */
export const callTimedOut = ({ message, details }: SvcError): SvcError =>
  svcError('TIMEOUT', message, { details, hint: 'give it less to do' })

export const threadLost = (why: string): SvcError =>
  svcError('SANDBOX_FAILED', `the thread that ran the code ended: ${why}`, { details: { reason: 'the sandbox stopped' } })

export const sandboxClosed = (): SvcError =>
  svcError('SANDBOX_CLOSED', 'the sandbox was closed', { hint: 'start no work while closing' })

export const limitInvalid = (field: string, why: string): SvcError =>
  svcError('INVALID_VALUE', `${field} ${why}`, { details: { field, reason: why } })

export const inputTooLarge = (what: string, most: number): SvcError =>
  svcError('INVALID_VALUE', `${what} has more than ${most} characters`, { details: { field: what, reason: 'too large' } })

/** What a guest asked of the service and may not have: told to the guest, in words. */
export const refused = (why: string): SvcError => svcError('REFUSED', why)

export const slotUnknown = (plugin: string, slot: string, known: readonly string[]): SvcError =>
  svcError('RUNTIME_SLOT', `its module exports "${slot}"; the runtime quickjs knows ${known.join(', ')} only`, {
    plugin,
    details: { slot, known },
    hint: 'export only what it knows, or run the plugin without "runtime"',
  })

export const exportsInvalid = (plugin: string): SvcError =>
  svcError('RUNTIME_EXPORTS', 'what its module exports cannot be read', {
    plugin,
    hint: 'export const tools = { name: { description, effects, parameters, call } }; docs/explanation/sandboxes.md shows one',
  })

export const itemInvalid = (plugin: string, name: string, why: string): SvcError =>
  svcError('RUNTIME_ITEM', `its module exports "${name}", ${why}`, {
    plugin,
    details: { name },
    hint: 'a tool has description, effects, parameters and call; docs/explanation/sandboxes.md shows one',
  })
