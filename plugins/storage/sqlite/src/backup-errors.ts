import { basename } from 'node:path'
import { codeOf, type SvcError, shownPath, svcError } from '@svc/core'

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
