import { codeOf, messageOf, nearest, svcError } from '@svc/core'
import type { JobState, PublicError } from '@svc/core/contracts'

export const jobUnknown = (id: string) =>
  svcError('JOB_UNKNOWN', `there is no job ${JSON.stringify(id.slice(0, 100))}`, {
    details: { value: id.slice(0, 100) },
    hint: 'List the jobs: svc jobs list',
  })

export const kindUnknown = (kind: string, known: readonly string[]) => {
  const similar = nearest(kind, [...known])
  return svcError('JOB_KIND_UNKNOWN', `no plugin adds the job kind ${JSON.stringify(kind.slice(0, 100))}`, {
    details: { value: kind.slice(0, 100), known, ...(similar === undefined ? {} : { nearest: similar }) },
    hint: similar === undefined ? 'List the kinds: svc jobs kinds' : `Did you mean "${similar}"?`,
  })
}

export const kindForbidden = (kind: string, principal: string) =>
  svcError('FORBIDDEN', `${principal} cannot add jobs of the kind "${kind}"`, {
    details: { kind },
    hint: 'Set `scope` in the job kind to let callers with that scope add jobs, or add the job with the scope admin',
  })

export const kindInternal = (kind: string, plugin: string) =>
  svcError('FORBIDDEN', `the job kind "${kind}" is internal: only the plugin ${plugin} adds its jobs`, {
    details: { field: 'kind', kind, plugin, reason: 'it is internal' },
    hint: 'List the kinds that you can start: svc jobs kinds',
  })

export const tooLarge = (what: string, size: number, limit: number) =>
  svcError('JOB_TOO_LARGE', `the ${what} of a job has at most ${limit} characters of JSON, this one has ${size}`, {
    details: { size, limit, retryable: false },
    hint: 'Store the data elsewhere, and pass a reference to it',
  })

export const queueFull = (limit: number) =>
  svcError('JOB_QUEUE_FULL', `there are already ${limit} queued jobs of this principal`, {
    details: { limit, retryable: true },
    hint: 'Wait until jobs have ended, or raise jobs.max_queued',
  })

export const wrongState = (id: string, state: JobState, wanted: string) =>
  svcError('JOB_STATE', `the job ${id} is ${state}, but this works only for a ${wanted} job`, {
    details: { state },
    hint: `Run: svc jobs show ${id}`,
  })

export const invalid = (field: string, reason: string, hint?: string) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason }, ...(hint === undefined ? {} : { hint }) })

export const timedOut = (ms: number) =>
  svcError('JOB_TIMEOUT', `the attempt did not end within ${ms} ms`, {
    hint: 'Raise the time limit of the kind (jobs.kinds.<kind>.timeout_s), or split the work',
  })

export const stuck = (graceMs: number) =>
  svcError('JOB_STUCK', `the job ignored its abort signal for ${graceMs} ms, so svc abandoned it`, {
    details: { retryable: false },
    hint: 'Make the job kind end when ctx.signal aborts. The worker keeps the job locked until the work ends',
  })

export const interrupted = () =>
  svcError('JOB_INTERRUPTED', 'the worker that executed the job exited before the job ended', {
    hint: 'If this happens again, read the log of the server for the reason of the exit',
  })

/** For code that goes on after its attempt has ended. */
export const attemptOver = () =>
  svcError('JOB_ATTEMPT_OVER', 'this attempt at the job has ended', {
    details: { retryable: false },
    hint: 'End the job when ctx.signal aborts',
  })

export const stepInvalid = (reason: string) =>
  svcError('JOB_STEP_INVALID', `the job kind yielded an invalid step: ${reason}`, {
    details: { retryable: false },
    hint: 'Yield steps as in the contract JobStep',
  })

/** A message of svc or of a plugin that chose its code. Messages of the system, and of errors without a code, can contain paths. */
const isShown = (code: string | undefined, details: unknown) =>
  code !== undefined && typeof details === 'object' && /^(?!ERR_|INTERNAL_ERROR$)[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$/.test(code)

const LONGEST_MESSAGE = 1000
const MOST_DETAILS = 4096

/** The error of a job as callers see it: no stack, and no message of foreign errors, which can contain paths. */
export function toPublicError(error: unknown): PublicError {
  const { details } = Object(error) as { details?: unknown }
  const code = codeOf(error)
  if (!isShown(code, details))
    return { code: 'JOB_FAILED', message: 'the job failed with an internal error; see the log of the server', details: {} }
  return { code: code!, message: messageOf(error).slice(0, LONGEST_MESSAGE), details: bounded(details as PublicError['details']) }
}

function bounded(details: PublicError['details'] | null): PublicError['details'] {
  const text = JSON.stringify(details ?? {}) as string | undefined
  return text === undefined || text.length > MOST_DETAILS ? {} : (JSON.parse(text) as PublicError['details'])
}
