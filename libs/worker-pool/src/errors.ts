import { type SvcError, svcError } from '@svc/core'
import type { Failure } from './messages.ts'

export const workTimeout = (work: string, ms: number): SvcError =>
  svcError('WORK_TIMEOUT', `${work} did not end within ${ms} ms and was stopped`, {
    details: { work, ms },
    hint: 'Split the work into smaller parts',
  })

const workMemory = (work: string, megabytes: number): SvcError =>
  svcError('WORK_MEMORY', `${work} exceeded its memory limit (${megabytes} MB) or its stack, so svc stopped it`, {
    details: { work, megabytes },
    hint: 'Split the work into smaller parts',
  })

/** An unexpected error of a task. The caller gets its message without paths of this machine. */
export const workFailed = (work: string, why: string): SvcError =>
  svcError('WORK_FAILED', `${work} failed: ${why.replace(PATH, '…')}`, { details: { work } })

/** Matches from the start of an absolute path to the end of the line: folder names can hold spaces, quotes and colons. */
const PATH = /(?:\bfile:\/\/|\b[A-Za-z]:\\|\\\\|(?<![\p{L}\p{N}\p{M}_.\-/])\/).*$/gmu

/** Converts a failure that a worker reported. */
export function fromWorker(work: string, failure: Failure, megabytes: number): SvcError {
  const { code, message, details, hint } = failure
  if (code === 'WORK_MEMORY') return workMemory(work, megabytes)
  if (code === 'WORK_FAILED') return workFailed(work, message)
  return svcError(code, message, { ...(details && { details }), ...(hint && { hint }) })
}

/** How a process exits when V8 has no memory left, in the heap or for one array. */
const OUT_OF_MEMORY = ['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGSEGV', '134', '133']

/** The process exited: `how` is its signal or exit code. */
export const lostWorker = (work: string, how: string, megabytes: number): SvcError =>
  OUT_OF_MEMORY.includes(how) ? workMemory(work, megabytes) : workFailed(work, `its process ended (${how})`)
