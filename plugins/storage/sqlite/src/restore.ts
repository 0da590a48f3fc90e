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
import { type Batches, createBatches } from './batch.ts'
import { declareSpace, loadCatalog, type StoredCatalog, type StoredCollection } from './catalog.ts'
import { asKnown, backupInvalid, backupMissing, backupNewer, restoreFailed, sameFile, storeInUse } from './errors.ts'
import { isBusy, isFileError, lastingOf, Refusal } from './file-errors.ts'
import { dropPartial, openForWriting, partialOf, sync } from './file.ts'
import { identityOf, isThere } from './identity.ts'
import { type Findings, inspect } from './inspect.ts'
import { UNASKED } from './wire.ts'

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

/** A collection, and how many records it has. */
export interface Held {
  readonly collection: string
  readonly records: number
}

/**
 * Takes the records of lasting collections from the former store into a copy of a backup, whose other records stay. Answers what is as the backup has it all
 * the same: there was no former store, or it could not be read, or it is of another version of the data.
 */
function carryOver(former: DatabaseSync | undefined, copy: string): Held[] {
  using db = openForWriting(copy, { mayMake: false })
  const carried = former ? carryAll(former, db) : new Set<string>()
  db.exec('PRAGMA journal_mode = DELETE')
  return lastingIn(loadCatalog(db))
    .filter(([name]) => !carried.has(name))
    .map(([name, { id }]) => ({ collection: name, records: countOf(db, id) }))
    .filter(({ records }) => records > 0)
}

type Named = readonly [name: string, collection: StoredCollection]

const lastingIn = ({ collections }: StoredCatalog): Named[] => [...collections].filter(([, { lasting }]) => lasting)

const countOf = (db: DatabaseSync, id: number) =>
  Number(db.prepare('SELECT count(*) AS n FROM records WHERE collection = ?').get(id)?.n)

/** The names of those that could be carried, each whole or not at all. */
function carryAll(from: DatabaseSync, to: DatabaseSync): Set<string> {
  try {
    const catalog = loadCatalog(from)
    const done = lastingIn(catalog).filter(one => carry(from, to, one, catalog.spaces))
    return new Set(done.map(([name]) => name))
  } catch (error) {
    return unlessFileError(error, new Set<string>())
  }
}

function carry(from: DatabaseSync, to: DatabaseSync, one: Named, spaces: StoredCatalog['spaces']): boolean {
  to.exec('BEGIN IMMEDIATE')
  try {
    const version = spaces.get(one[1].space) ?? 0
    const batches = declared(to, one, version)
    if (batches) copyRecords(from, one, batches)
    to.exec('COMMIT')
    return batches !== undefined
  } catch (error) {
    to.exec('ROLLBACK')
    return unlessFileError(error, false)
  }
}

/** `undefined` where the records of the one would be none of the other's form. */
function declared(db: DatabaseSync, [name, { space, watched, indexes }]: Named, version: number): Batches | undefined {
  const own = Object.fromEntries(indexes.map(({ id, paths }) => [`of_${id}`, paths]))
  const wanted: Space = { name: space, version, collections: { [name]: { indexes: own, watched, lasting: true } } }
  const stored = loadCatalog(db).spaces.get(space)
  if (stored !== undefined && stored !== version) return undefined
  declareSpace(db, wanted)
  return createBatches(db, { catalog: loadCatalog(db), spaces: new Map([[space, wanted]]) })
}

function copyRecords(from: DatabaseSync, [name, { id }]: Named, batches: Batches): void {
  const rows = from.prepare('SELECT key, value FROM records WHERE collection = ?').iterate(id)
  for (const { key, value } of rows) batches.run([['put', name, String(key), String(value), UNASKED]])
}

/** What cannot be read is no reason to restore nothing: it is often why somebody restores. */
function unlessFileError<T>(error: unknown, otherwise: T): T {
  if (lastingOf(error) === 'full') throw error
  if (error instanceof Refusal || error instanceof SyntaxError || isFileError(error)) return otherwise
  throw error
}
