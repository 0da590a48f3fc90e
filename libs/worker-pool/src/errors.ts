import { type SvcError, svcError } from '@svc/core'
import type { Failure } from './messages.ts'

export const workTimeout = (work: string, ms: number): SvcError =>
  svcError('WORK_TIMEOUT', `${work} did not end within ${ms} ms and was stopped`, {
    details: { work, ms },
    hint: 'give it less to do',
  })

const workMemory = (work: string, megabytes: number): SvcError =>
  svcError('WORK_MEMORY', `${work} needs more memory than it may have (${megabytes} MB, or its stack) and was stopped`, {
    details: { work, megabytes },
    hint: 'give it less to do',
  })

export const workBusy = (waiting: number): SvcError =>
  svcError('WORK_BUSY', `${waiting} pieces of work are waiting already`, { hint: 'try again later' })

export const workLate = (ms: number): SvcError =>
  svcError('WORK_BUSY', `it waited ${ms} ms for its turn behind other work, and was given up`, {
    details: { ms },
    hint: 'ask for less at once, or try again later',
  })

export const workClosed = (): SvcError =>
  svcError('WORK_CLOSED', 'its processes were closed', { hint: 'start no work while closing' })

/** What the work threw without meaning to: its words go to whoever asked for the work, but no path of this machine. */
export const workFailed = (work: string, why: string): SvcError =>
  svcError('WORK_FAILED', `${work} failed: ${why.replace(PATH, '…')}`, { details: { work } })

/** Where a path from the root of the machine begins. Folders may hold blanks, quotes and colons: no more of the line is told. */
const PATH = /(?:\bfile:\/\/|\b[A-Za-z]:\\|\\\\|(?<![\p{L}\p{N}\p{M}_.\-/])\/).*$/gmu

/** A failure that the worker told. */
export function fromWorker(work: string, failure: Failure, megabytes: number): SvcError {
  const { code, message, details, hint } = failure
  if (code === 'WORK_MEMORY') return workMemory(work, megabytes)
  if (code === 'WORK_FAILED') return workFailed(work, message)
  return svcError(code, message, { ...(details && { details }), ...(hint && { hint }) })
}

/** What a process dies of when V8 has no memory left, whether in the heap or for one array. */
const OUT_OF_MEMORY = ['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGSEGV', '134', '133']

/** What ended the process itself: a signal, or its code. */
export const lostWorker = (work: string, how: string, megabytes: number): SvcError =>
  OUT_OF_MEMORY.includes(how) ? workMemory(work, megabytes) : workFailed(work, `its process ended (${how})`)
