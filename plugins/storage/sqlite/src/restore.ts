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
import type { Space } from '@svc/core/contracts'
import type { StoredCatalog, StoredCollection } from '@svc/storage-kit/stored-catalog'
import { type Batches, createBatches } from './batch.ts'
import { loadFileCatalog } from '@svc/storage-kit/store-file'
import { declareSpace } from './catalog.ts'
import { asKnown, backupInvalid, backupMissing, backupNewer, restoreFailed, sameFile, storeInUse } from './errors.ts'
import { isBusy, isFileError, lastingOf, FileRefusal } from './file-errors.ts'
import { dropPartial, openForWriting, partialOf, sync } from './file.ts'
import { identityOf, isThere } from './identity.ts'
import { type Findings, inspect } from './inspect.ts'
import { UNASKED } from './wire.ts'

/** The restored store. */
export interface Restored {
  /** Path of the former store; absent if there was none. */
  readonly kept?: string
  readonly bytes: number
  readonly findings: Findings
  /** Lasting collections with the records of the backup, because no former store could be read. */
  readonly unsure: readonly CollectionCount[]
}

/**
 * Replaces an unused store with a checked copy of a backup. Keeps the former store beside it, and the store exists at every
 * moment. `alone` makes sure that no server uses it during the work.
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
    if (findings.problem?.code === 'STORE_NEWER') throw backupNewer(backup, findings.problem.reason)
    if (findings.problem) throw backupInvalid(backup, asKnown(findings.problem.reason, partial, backup))
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

/** With its log, if the user copied both. */
function fetch(backup: string, partial: string): void {
  mkdirSync(dirname(partial), { recursive: true, mode: 0o700 })
  for (const side of ['', '-wal']) {
    if (!existsSync(backup + side)) continue
    copyFileSync(backup + side, partial + side, constants.COPYFILE_FICLONE)
    chmodSync(partial + side, 0o600)
  }
}

/** The holders of leases at the time of the backup hold them no more. */
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
  // A log exists only if the store could not be opened: it belongs to the former store.
  if (existsSync(`${store}-wal`)) renameSync(`${store}-wal`, `${kept}-wal`)
  rmSync(`${store}-shm`, { force: true })
  renameSync(partial, store)
  sync(dirname(store))
  return { ...(isReplaced ? { kept } : {}), unsure }
}

/** Locks a store exclusively and checkpoints its log; undefined if it cannot be opened. Throws STORE_IN_USE. */
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

/** SQLite would delete the log beside a file that is not its own, and that log may be all that is left. */
function looksLikeDatabase(path: string): boolean {
  const file = openSync(path, 'r')
  try {
    const head = Buffer.alloc(MAGIC.length)
    return readSync(file, head) === head.length && head.toString('latin1') === MAGIC
  } finally {
    closeSync(file)
  }
}

/** A collection and its number of records. */
export interface CollectionCount {
  readonly collection: string
  readonly records: number
}

/**
 * Copies the records of lasting collections from the former store into the copy of a backup. Returns the collections that keep
 * the backup's records: there was no former store, it was unreadable, or its data has another version.
 */
function carryOver(former: DatabaseSync | undefined, copy: string): CollectionCount[] {
  using db = openForWriting(copy, { mayMake: false })
  const carried = former ? carryAll(former, db) : new Set<string>()
  db.exec('PRAGMA journal_mode = DELETE')
  return lastingIn(loadFileCatalog(db))
    .filter(([name]) => !carried.has(name))
    .map(([name, { id }]) => ({ collection: name, records: countOf(db, id) }))
    .filter(({ records }) => records > 0)
}

type Named = readonly [name: string, collection: StoredCollection]

const lastingIn = ({ collections }: StoredCatalog): Named[] => [...collections].filter(([, { lasting }]) => lasting)

const countOf = (db: DatabaseSync, id: number) =>
  Number(db.prepare('SELECT count(*) AS n FROM records WHERE collection = ?').get(id)?.n)

/** The names of the copied collections, each whole or not at all. */
function carryAll(from: DatabaseSync, to: DatabaseSync): Set<string> {
  try {
    const catalog = loadFileCatalog(from)
    const done = lastingIn(catalog).filter(item => carry(from, to, item, catalog.spaces))
    return new Set(done.map(([name]) => name))
  } catch (error) {
    return unlessFileError(error, new Set<string>())
  }
}

function carry(from: DatabaseSync, to: DatabaseSync, named: Named, spaces: StoredCatalog['spaces']): boolean {
  to.exec('BEGIN IMMEDIATE')
  try {
    const version = spaces.get(named[1].space) ?? 0
    const batches = declared(to, named, version)
    if (batches) copyRecords(from, named, batches)
    to.exec('COMMIT')
    return batches !== undefined
  } catch (error) {
    to.exec('ROLLBACK')
    return unlessFileError(error, false)
  }
}

/** Undefined if the records have different formats. */
function declared(db: DatabaseSync, [name, { space, watched, indexes }]: Named, version: number): Batches | undefined {
  const own = Object.fromEntries(indexes.map(({ id, paths }) => [`of_${id}`, paths]))
  const wanted: Space = { name: space, version, collections: { [name]: { indexes: own, watched, lasting: true } } }
  const stored = loadFileCatalog(db).spaces.get(space)
  if (stored !== undefined && stored !== version) return undefined
  declareSpace(db, wanted)
  return createBatches(db, { catalog: loadFileCatalog(db), spaces: new Map([[space, wanted]]) })
}

function copyRecords(from: DatabaseSync, [name, { id }]: Named, batches: Batches): void {
  const rows = from.prepare('SELECT key, value FROM records WHERE collection = ?').iterate(id)
  for (const { key, value } of rows) batches.run([['put', name, String(key), String(value), UNASKED]])
}

/** Unreadable data must not prevent a restore: it is often the reason for it. */
function unlessFileError<T>(error: unknown, otherwise: T): T {
  if (lastingOf(error) === 'full') throw error
  if (error instanceof FileRefusal || error instanceof SyntaxError || isFileError(error)) return otherwise
  throw error
}
