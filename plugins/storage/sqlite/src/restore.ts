import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { codeOf, messageOf } from '@svc/core'
import { asKnown, backupInvalid, backupMissing, backupNewer, restoreFailed, sameFile, storeInUse } from './backup-errors.ts'
import { openForWriting, sync } from './file.ts'
import { identityOf, isThere } from './identity.ts'
import { type Findings, inspect } from './inspect.ts'
import { carryOver, type Held } from './lasting.ts'
import { dropPartial, partialOf } from './partial.ts'
import { isBusy } from './trouble.ts'

/** What is in the store's place now. */
export interface Restored {
  /** Where the former store lies now; absent when there was none. */
  readonly kept?: string
  readonly bytes: number
  readonly findings: Findings
  /** Lasting collections that are as the backup has them: there was no former store that could tell what became of them since. */
  readonly unsure: readonly Held[]
}

/**
 * Puts a copy of a backup in the place of a store that nobody has open, once it has been looked through. The former store stays beside it, and at no moment is
 * there none. `alone` sees to it that no server has it open while its work is done.
 */
export async function restore(
  backup: string,
  store: string,
  signal: AbortSignal,
  alone: <T>(work: () => T) => Promise<T> = async work => work()
): Promise<Restored> {
  const identity = identityOf(backup)
  if (!identity || !statSync(backup).isFile()) throw backupMissing(backup)
  if (isThere(identity, store)) throw sameFile(backup)
  const partial = partialOf(store)
  try {
    fetch(backup, partial)
    const findings = await inspect(partial, signal)
    if (findings.fault?.code === 'STORE_NEWER') throw backupNewer(backup, findings.fault.reason)
    if (findings.fault) throw backupInvalid(backup, asKnown(findings.fault.reason, partial, backup))
    settle(partial)
    const replaced = await alone(() => replace(store, partial))
    return { ...replaced, bytes: statSync(store).size, findings }
  } catch (error) {
    throw KNOWN.has(codeOf(error) ?? '') || signal.aborted
      ? error
      : restoreFailed(store, asKnown(messageOf(error), partial, store), error)
  } finally {
    dropPartial(partial)
  }
}

const KNOWN = new Set(['STORE_NEWER', 'BACKUP_INVALID', 'STORE_IN_USE'])

/** With its log, where somebody copied both. */
function fetch(backup: string, partial: string): void {
  mkdirSync(dirname(partial), { recursive: true, mode: 0o700 })
  for (const side of ['', '-wal']) {
    if (!existsSync(backup + side)) continue
    copyFileSync(backup + side, partial + side, constants.COPYFILE_FICLONE)
    chmodSync(partial + side, 0o600)
  }
}

/** Whoever held a lease when the backup was made holds it no more. */
function settle(partial: string): void {
  {
    using db = openForWriting(partial, { mayMake: false })
    db.exec('DELETE FROM leases; PRAGMA journal_mode = DELETE')
  }
  sync(partial)
}

function replace(store: string, partial: string): Pick<Restored, 'kept' | 'unsure'> {
  const isReplaced = existsSync(store)
  using former = isReplaced ? claim(store) : undefined
  const unsure = carryOver(former, partial)
  sync(partial)
  const kept = `${store}.bak-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`
  if (isReplaced) linkSync(store, kept)
  // There is a log only where the store could not be opened: it belongs to the former one.
  if (existsSync(`${store}-wal`)) renameSync(`${store}-wal`, `${kept}-wal`)
  rmSync(`${store}-shm`, { force: true })
  renameSync(partial, store)
  sync(dirname(store))
  return { ...(isReplaced ? { kept } : {}), unsure }
}

/** Takes a store for itself alone, with all of its log in it; nothing where it cannot even be opened. Throws STORE_IN_USE. */
function claim(store: string): DatabaseSync | undefined {
  if (!looksLikeDatabase(store)) return undefined
  const db = new DatabaseSync(store, { timeout: 0 })
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT; PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE')
    return db
  } catch (error) {
    db.close()
    if (isBusy(error)) throw storeInUse(store)
    return undefined
  }
}

const MAGIC = 'SQLite format 3\0'

/** SQLite would delete the log beside a file that is none of its own, and that log may be all that is left. */
function looksLikeDatabase(path: string): boolean {
  const file = openSync(path, 'r')
  try {
    const head = Buffer.alloc(MAGIC.length)
    return readSync(file, head) === head.length && head.toString('latin1') === MAGIC
  } finally {
    closeSync(file)
  }
}
