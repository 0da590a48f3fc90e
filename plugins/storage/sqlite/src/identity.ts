import { type BigIntStats, renameSync, rmSync, statSync } from 'node:fs'
import { codeOf } from '@svc/core'

/**
 * Distinguishes an open file, and its log, from a replacement: number and time of birth. The number alone is reused after a
 * deletion.
 */
export interface Identity {
  readonly file: string
  readonly log: string | undefined
}

/** The present identity of the file; undefined if it does not exist. */
export function identityOf(path: string): Identity | undefined {
  const file = identifierOf(statOf(path))
  return file === undefined ? undefined : { file, log: identifierOf(statOf(logOf(path))) }
}

/** Whether it is still the opened file. */
export const isThere = (opened: Identity, path: string): boolean => identifierOf(statOf(path)) === opened.file

/**
 * Moves the log of a replaced file away, because SQLite would use it for the new file. Keeps it: the former file needs it to be
 * complete.
 */
export function setAside(path: string, former: Identity): void {
  const file = statOf(path)
  const log = statOf(logOf(path))
  if (!file || !log || identifierOf(file) === former.file) return
  if (identifierOf(log) !== former.log && !isLeftOver(log, file)) return
  const aside = `${path}.former-${Date.now()}-wal`
  renameSync(logOf(path), aside)
  // Another process may have done this already, and this is the new file's log.
  if (identifierOf(statOf(aside)) !== identifierOf(log)) return renameSync(aside, logOf(path))
  rmSync(`${path}-shm`, { force: true })
  if (log.size === 0n) rmSync(aside)
}

/**
 * Whether an empty log is older than this file in its place: another reader of the former file opened it, and would delete it.
 */
const isLeftOver = (log: BigIntStats, file: BigIntStats) =>
  log.size === 0n && file.ctimeNs > file.mtimeNs && log.birthtimeNs < file.ctimeNs

const logOf = (path: string) => `${path}-wal`

const identifierOf = (stat: BigIntStats | undefined) => stat && `${stat.dev}:${stat.ino}:${stat.birthtimeNs}`

/** A name that is too long for a file means no file. */
function statOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    if (codeOf(error) === 'ENAMETOOLONG') return undefined
    throw error
  }
}
