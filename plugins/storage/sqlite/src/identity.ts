import { type BigIntStats, renameSync, rmSync, statSync } from 'node:fs'
import { codeOf } from '@svc/core'

/**
 * What tells an open file from another one that is put in its place, and the log beside it: number and time of birth. The number alone does not: a file system
 * gives that of a deleted file to the next one.
 */
export interface Identity {
  readonly file: string
  readonly log: string | undefined
}

/** The file's identity now, `undefined` when there is none. */
export function identityOf(path: string): Identity | undefined {
  const file = identifierOf(statOf(path))
  return file === undefined ? undefined : { file, log: identifierOf(statOf(logOf(path))) }
}

/** Whether it is still the file that was opened. */
export const isThere = (opened: Identity, path: string): boolean => identifierOf(statOf(path)) === opened.file

/**
 * Another file is in the place of one that was open here: the log of the former one, which SQLite would take for the new one's, is moved out of the way. It is
 * kept: beside the former file it makes that one whole.
 */
export function setAside(path: string, former: Identity): void {
  const file = statOf(path)
  const log = statOf(logOf(path))
  if (!file || !log || identifierOf(file) === former.file) return
  if (identifierOf(log) !== former.log && !isLeftOver(log, file)) return
  const aside = `${path}.former-${Date.now()}-wal`
  renameSync(logOf(path), aside)
  // Another process may have been quicker, and this is the new file's log already.
  if (identifierOf(statOf(aside)) !== identifierOf(log)) return renameSync(aside, logOf(path))
  rmSync(`${path}-shm`, { force: true })
  if (log.size === 0n) rmSync(aside)
}

/** Whether an empty log was there before the file was moved here: one that another reader has opened with a former file, and would take away from this one. */
const isLeftOver = (log: BigIntStats, file: BigIntStats) =>
  log.size === 0n && file.ctimeNs > file.mtimeNs && log.birthtimeNs < file.ctimeNs

const logOf = (path: string) => `${path}-wal`

const identifierOf = (stat: BigIntStats | undefined) => stat && `${stat.dev}:${stat.ino}:${stat.birthtimeNs}`

/** A name that is longer than that of any file names none. */
function statOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    if (codeOf(error) === 'ENAMETOOLONG') return undefined
    throw error
  }
}
