import { closeSync, existsSync, linkSync, openSync, renameSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { codeOf, messageOf } from '@svc/core'
import { loadFileCatalog } from '@svc/storage-kit/store-file'
import { asKnown, backupExists, backupFailed, sameFile, storeMissing, storeUnreadable } from './errors.ts'
import { dropPartial, openForReading, partialOf, sync } from './file.ts'
import { type Findings, inspect } from './inspect.ts'
import { mergeText } from './text-tables.ts'
import { isThere, identityOf } from './identity.ts'
import { isFileError, FileRefusal, wordsFor } from './file-errors.ts'

/** A backup that was made and checked. */
export interface Backup {
  readonly bytes: number
  readonly findings: Findings
}
export interface BackupOptions {
  /** Whether an existing file may be replaced. */
  readonly force: boolean
  readonly signal: AbortSignal
}

const WAIT_MS = 10_000

/**
 * Copies a store to a file that only its owner can read, while others use the store. The copy contains all acknowledged writes
 * and only whole batches. The file gets its name after it is synced and checked. Deleted data is not copied.
 */
export async function makeBackup(store: string, file: string, { force, signal }: BackupOptions): Promise<Backup> {
  checkPlaces(store, file, force)
  const partial = partialOf(file)
  try {
    begin(partial, file)
    copy(store, partial, file)
    signal.throwIfAborted()
    const findings = await inspect(partial, signal)
    if (findings.problem) throw backupFailed(file, asKnown(findings.problem.reason, partial, file))
    finish(partial, file, force)
    return { bytes: statSync(file).size, findings }
  } finally {
    dropPartial(partial)
  }
}

function checkPlaces(store: string, file: string, force: boolean): void {
  const identity = identityOf(store)
  if (!identity) throw storeMissing(store)
  if (isThere(identity, file)) throw sameFile(file)
  if (existsSync(file) && (!force || !statSync(file).isFile())) throw backupExists(file)
}

function begin(partial: string, file: string): void {
  try {
    dropPartial(partial)
    closeSync(openSync(partial, 'wx', 0o600))
  } catch (error) {
    throw backupFailed(file, asKnown(messageOf(error), partial, file), error)
  }
}

function copy(store: string, partial: string, file: string): void {
  try {
    using db = openForReading(store, WAIT_MS)
    if (!db) throw storeMissing(store)
    db.prepare('VACUUM INTO ?').run(partial)
    purgeTexts(partial)
  } catch (error) {
    throw copyError(error, store, file)
  }
}

/** Deletes the words of deleted records, which full-text indexes keep until they are merged. */
function purgeTexts(partial: string): void {
  using db = new DatabaseSync(partial)
  const texts = [...loadFileCatalog(db).collections.values()].flatMap(({ texts: own }) => own)
  if (texts.length === 0) return
  for (const { id } of texts) db.exec(mergeText(id))
  db.exec('VACUUM')
}

/** A full disk concerns the target, not the store. */
function copyError(error: unknown, store: string, file: string): unknown {
  if (error instanceof FileRefusal) return storeUnreadable(store, String(error.refused.args[0]), error)
  if (!isFileError(error)) return error
  const isTarget = [8, 10, 13, 14].includes(Number((error as { errcode?: number }).errcode) & 0xff)
  const reason = wordsFor(error, basename(isTarget ? file : store))[0]
  return isTarget ? backupFailed(file, reason, error) : storeUnreadable(store, reason, error)
}

function finish(partial: string, file: string, force: boolean): void {
  try {
    sync(partial)
    if (force) renameSync(partial, file)
    else linkSync(partial, file)
    sync(dirname(file))
  } catch (error) {
    throw codeOf(error) === 'EEXIST' ? backupExists(file) : backupFailed(file, asKnown(messageOf(error), partial, file), error)
  }
}
