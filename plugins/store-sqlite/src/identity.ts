import { renameSync, rmSync, statSync } from 'node:fs'
import { codeOf } from '@svc/core'

/** What tells an open file from another one that is put in its place: its number, and the number of the log beside it. */
export interface Identity {
  readonly file: string
  readonly log: string | undefined
}

/** The file's identity now, `undefined` when there is none. */
export function identityOf(path: string): Identity | undefined {
  const file = numberOf(path)
  return file === undefined ? undefined : { file, log: numberOf(logOf(path)) }
}

/** Whether it is still the file that was opened. */
export const isThere = (opened: Identity, path: string): boolean => numberOf(path) === opened.file

/**
 * Another file is in the place of one that was open here: the log of the former one, which SQLite would take for the new one's, is moved out of the way. It is
 * kept: beside the former file it makes that one whole.
 */
export function setAside(path: string, former: Identity): void {
  const file = numberOf(path)
  if (file === undefined || file === former.file || former.log === undefined || numberOf(logOf(path)) !== former.log) return
  const aside = `${path}.former-${Date.now()}-wal`
  renameSync(logOf(path), aside)
  // Another process may have been quicker, and this is the new file's log already.
  if (numberOf(aside) !== former.log) renameSync(aside, logOf(path))
  else rmSync(`${path}-shm`, { force: true })
}

const logOf = (path: string) => `${path}-wal`

function numberOf(path: string): string | undefined {
  const stat = statOf(path)
  return stat && `${stat.dev}:${stat.ino}`
}

/** A name that is longer than that of any file names none. */
function statOf(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if (codeOf(error) === 'ENAMETOOLONG') return undefined
    throw error
  }
}
