import { basename } from 'node:path'
import { codeOf, shownPath, type SvcError, svcError } from '@svc/core'
import { storeConflict, storeFenced, storeInvalid, storeNewer, storeUnavailable, storeUnknown } from '@svc/storage-kit'
import { gone, isFileError, lastingOf, type Moment, Refusal, wordsFor } from './file-errors.ts'
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
  STORE_UNAVAILABLE: (args, path) => fileTrouble(path, [text(args, 0), text(args, 1)], args[2], text(args, 3)),
}

/** What the writer refused, as the contract says it. */
export const refusedError = ({ code, args }: Refused, path: string): SvcError => builders[code](args, path)

/** What work on the file threw, as the contract says it. */
export function readError(error: unknown, path: string, moment: Moment = 'running'): unknown {
  if (error instanceof Refusal) return refusedError(error.refused, path)
  if (!isFileError(error)) return error
  return fileTrouble(path, wordsFor(error, basename(path), moment), error, lastingOf(error))
}

export const fileGone = (path: string): SvcError => refusedError(gone().refused, path)

/** Trouble with the file; where it lies is for the terminal and the log, the message goes to others. `lasting`: see `lastingOf`. */
function fileTrouble(path: string, [reason, hint]: readonly [string, string], cause: unknown, lasting: string): SvcError {
  const details = { retryable: true, ...(lasting === '' ? {} : { lasting }) }
  return svcError('STORE_UNAVAILABLE', reason, { details, hint, cause, where: shownPath(path) })
}

const placed = ({ code, message, details, hint = '' }: SvcError, path: string): SvcError =>
  svcError(code, message, { details, hint, where: shownPath(path) })

export const writerGone = (cause: unknown): SvcError =>
  storeUnavailable('the thread that writes the store ended', 'the next request starts it anew; the log has the cause', cause)

export const tooManyWrites = (): SvcError =>
  storeUnavailable('too many writes wait for the disk', 'try again in a moment; a disk that stays this slow needs looking after')

export const fellBehind = (): SvcError =>
  storeUnavailable('this watcher fell too far behind', 'read what is there and watch again')

export const noAnswer = (seconds: number): SvcError =>
  storeUnavailable(
    `the store has not answered for ${seconds} s: another program has locked it, or the disk hangs`,
    'end the program that holds the file (a backup, a database browser), or look after the disk; the next request works then'
  )

/** Words with the name of the file that the person knows, in the place of that of our own beside it. */
export const asKnown = (words: string, inner: string, known: string): string => words.replaceAll(basename(inner), basename(known))

export const storeMissing = (path: string): SvcError =>
  svcError('STORE_MISSING', 'there is no store yet', {
    where: shownPath(path),
    hint: 'see that SVC_HOME and store.path are those of the server',
  })

export const sameFile = (path: string): SvcError =>
  svcError('BACKUP_INVALID', 'this is the store itself', { where: shownPath(path), hint: 'name another file' })

export const backupExists = (path: string): SvcError =>
  svcError('BACKUP_EXISTS', 'there is a file of this name already', {
    where: shownPath(path),
    hint: 'name another file, or write over it with --force',
  })

export const backupFailed = (path: string, reason: string, cause?: unknown): SvcError =>
  svcError('BACKUP_FAILED', `the backup was not made: ${reason}`, {
    where: shownPath(path),
    cause,
    hint:
      codeOf(cause) === 'ENAMETOOLONG'
        ? 'give it a shorter name'
        : 'see that its folder is there and writable, and that its disk has room for the whole store',
  })

export const storeUnreadable = (path: string, reason: string, cause: unknown): SvcError =>
  svcError('BACKUP_FAILED', `the store cannot be read: ${reason}`, {
    where: shownPath(path),
    cause,
    hint: 'restore an older backup: svc store restore <file>',
  })

export const backupMissing = (path: string): SvcError =>
  svcError('BACKUP_INVALID', 'there is no such file', {
    where: shownPath(path),
    hint: 'name a file that svc store backup has made',
  })

export const backupInvalid = (path: string, reason: string): SvcError =>
  svcError('BACKUP_INVALID', reason, { where: shownPath(path), hint: 'name another file that svc store backup has made' })

export const backupNewer = (path: string, reason: string): SvcError =>
  svcError('STORE_NEWER', reason, { where: shownPath(path), hint: 'update svc, or name an older backup' })

export const serverDown = (
  { pid, url }: { readonly pid: number; readonly url: string },
  problems: readonly SvcError[]
): SvcError =>
  svcError('SERVER_DOWN', `the store is restored, but ${url} (process ${pid}) could not come back: ${messagesOf(problems)}`, {
    hint: 'fix what is said, and start it again: svc serve',
  })

const messagesOf = (problems: readonly SvcError[]) => problems.map(problem => problem.message).join('; ')

export const storeInUse = (path: string): SvcError =>
  svcError('STORE_IN_USE', 'another program has the store open', {
    where: shownPath(path),
    hint: 'end it first: a server of another home, a database browser, a backup',
  })

export const restoreFailed = (path: string, reason: string, cause: unknown): SvcError =>
  svcError('RESTORE_FAILED', `nothing was restored: ${reason}`, {
    where: shownPath(path),
    cause,
    hint:
      codeOf(cause) === 'ENAMETOOLONG'
        ? 'give the store a shorter name in store.path: its log, and the former store, lie beside it under longer ones'
        : 'see that the folder of the store is writable and its disk has room for another store',
  })
