import { basename } from 'node:path'
import { codeOf, shownPath, type SvcError, svcError } from '@svc/core'
import {
  storeConflict,
  storeFenced,
  storeInvalid,
  storeNewer,
  storeUnavailable,
  storeUnknown,
  storeUnsure,
} from '@svc/storage-kit'
import { gone, isDamage, isFileError, lastingOf, type Moment, READ_ONLY, FileRefusal, wordsFor } from './file-errors.ts'
import type { Refused } from './wire.ts'

type Args = readonly (string | number)[]
const text = (args: Args, at: number) => String(args[at] ?? '')
const number = (args: Args, at: number) => Number(args[at])

const builders: Record<Refused['code'], (args: Args, path: string) => SvcError> = {
  STORE_CONFLICT: args => storeConflict(number(args, 0), number(args, 1), number(args, 2)),
  STORE_FENCED: args => storeFenced(text(args, 0), number(args, 1)),
  STORE_NEWER: (args, path) => placed(storeNewer(text(args, 0), number(args, 1), number(args, 2)), path),
  STORE_UNKNOWN: args => storeUnknown(text(args, 0), text(args, 1)),
  STORE_INVALID: args => storeInvalid(text(args, 0)),
  STORE_UNAVAILABLE: (args, path) => fileProblem(path, [text(args, 0), text(args, 1)], args[2], text(args, 3)),
  STORE_UNSURE: (args, path) => placed(storeUnsure(text(args, 0), args[1]), path),
}

/** Converts a refusal of the writer into an error of the contract. */
export const refusedError = ({ code, args }: Refused, path: string): SvcError => builders[code](args, path)

/** Converts an error of the file into an error of the contract. */
export function readError(error: unknown, path: string, moment: Moment = 'running'): unknown {
  if (error instanceof FileRefusal) return refusedError(error.refused, path)
  if (!isFileError(error)) return error
  return fileProblem(path, wordsFor(error, basename(path), moment), error, lastingOf(error))
}

export const fileGone = (path: string): SvcError => refusedError(gone().refused, path)

/** An error of the file. Only the terminal and the log show its path. `lasting`: see `lastingOf`. */
function fileProblem(path: string, [reason, hint]: readonly [string, string], cause: unknown, lasting: string): SvcError {
  const details = { retryable: true, ...(lasting === '' ? {} : lasting === READ_ONLY ? { reason: READ_ONLY } : { lasting }) }
  return svcError('STORE_UNAVAILABLE', reason, { details, hint, cause, where: shownPath(path) })
}

const placed = ({ code, message, details, hint = '', cause }: SvcError, path: string): SvcError =>
  svcError(code, message, { details, hint, cause, where: shownPath(path) })

/** The thread that writes ended before it answered a batch. */
export const answerLost = (cause: unknown): SvcError => storeUnsure('the thread that writes the store ended', cause)

export const writerGone = (cause: unknown): SvcError =>
  storeUnavailable(
    'the thread that writes the store ended',
    'Try again: the next request restarts it; the log has the cause',
    cause
  )

export const tooManyWrites = (): SvcError =>
  storeUnavailable('too many writes wait for the disk', 'Try again in a moment, and check why the disk is slow')

export const fellBehind = (): SvcError =>
  storeUnavailable('this watcher fell too far behind', 'Read the present state and watch again')

export const noAnswer = (seconds: number): SvcError =>
  storeUnavailable(
    `the store has not answered for ${seconds} s: another program has locked it, or the disk hangs`,
    'End the program that holds the file (a backup, a database browser), or check the disk; the next request works then'
  )

/** Replaces the name of svc's temporary file by the name that the user knows. */
export const asKnown = (words: string, inner: string, known: string): string => words.replaceAll(basename(inner), basename(known))

export const storeMissing = (path: string): SvcError =>
  svcError('STORE_MISSING', 'the store does not exist yet', {
    where: shownPath(path),
    hint: 'Set SVC_HOME and store.path to those of the server',
  })

export const sameFile = (path: string): SvcError =>
  svcError('BACKUP_INVALID', 'this is the store itself', { where: shownPath(path), hint: 'Name another file' })

export const backupExists = (path: string): SvcError =>
  svcError('BACKUP_EXISTS', 'the file exists already', {
    where: shownPath(path),
    hint: 'Name another file, or replace it with --force',
  })

export const backupFailed = (path: string, reason: string, cause?: unknown): SvcError =>
  svcError('BACKUP_FAILED', `cannot make the backup: ${reason}`, {
    where: shownPath(path),
    cause,
    hint:
      codeOf(cause) === 'ENAMETOOLONG'
        ? 'Give it a shorter name'
        : 'Make sure that its folder exists and is writable, and that its disk has space for the whole store',
  })

export const storeUnreadable = (path: string, reason: string, cause: unknown): SvcError =>
  svcError('BACKUP_FAILED', `cannot make the backup: svc cannot read the store: ${reason}`, {
    where: shownPath(path),
    cause,
    hint: isDamage(cause) ? 'Restore an older backup: svc store restore <file>' : 'Fix the reported problem and try again',
  })

export const backupMissing = (path: string): SvcError =>
  svcError('BACKUP_INVALID', 'the file does not exist', {
    where: shownPath(path),
    hint: 'Name a file that svc store backup wrote',
  })

export const backupInvalid = (path: string, reason: string): SvcError =>
  svcError('BACKUP_INVALID', reason, { where: shownPath(path), hint: 'Name another file that svc store backup wrote' })

export const backupNewer = (path: string, reason: string): SvcError =>
  svcError('STORE_NEWER', reason, { where: shownPath(path), hint: 'Update svc, or name an older backup' })

export const serverDown = (
  { pid, url }: { readonly pid: number; readonly url: string },
  problems: readonly SvcError[]
): SvcError =>
  svcError(
    'SERVER_DOWN',
    `the store is restored, but the server at ${url} (process ${pid}) could not resume: ${messagesOf(problems)}`,
    {
      hint: 'Fix the reported problems, and start the server again: svc serve',
    }
  )

const messagesOf = (problems: readonly SvcError[]) => problems.map(problem => problem.message).join('; ')

export const storeInUse = (path: string): SvcError =>
  svcError('STORE_IN_USE', 'another program has the store open', {
    where: shownPath(path),
    hint: 'Close that program first, for example a server of another home, a database browser or a backup',
  })

export const restoreFailed = (path: string, reason: string, cause: unknown): SvcError =>
  svcError('RESTORE_FAILED', `cannot restore the store: ${reason}`, {
    where: shownPath(path),
    cause,
    hint:
      codeOf(cause) === 'ENAMETOOLONG'
        ? 'Give the store a shorter name in store.path: its log and the former store get longer names'
        : 'Make sure that the folder of the store is writable, and that its disk has space for another store',
  })

export const backupsFull = (most: number) =>
  svcError('STORE_BACKUP_FULL', `the folder backups of the svc home already has ${most} backups`, {
    details: { limit: most, retryable: false },
    hint: 'Move them to another machine, or delete those that are not needed',
  })

/** Its message has no path: clients read it in the job. */
export const backupUnmade = ({ code, message }: { readonly code: string | undefined; readonly message: string }) =>
  svcError(code ?? 'STORE_BACKUP_FAILED', message, { details: { retryable: false } })
