import { hash } from 'node:crypto'
import { accessSync, closeSync, constants, existsSync, fsyncSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite'
import { STORE_FILE_FORMATS, STORE_FILE_ID } from '@svc/storage-kit/store-file'
import { cannotOpen, gone, FileRefusal } from './file-errors.ts'
import { TEXTS } from './text-tables.ts'

/** The marks of a kind of file: they exclude databases of other programs, and newer formats of the tables. */
export interface FileKind {
  readonly what: string
  readonly application: number
  readonly format: number
  /** The newest format that this program reads, if later ones have additions that not every file has. */
  readonly newest?: number
}

const STORE: FileKind = {
  what: 'the store file',
  application: STORE_FILE_ID,
  format: STORE_FILE_FORMATS[0],
  newest: STORE_FILE_FORMATS[1],
}

/** Marks a file as one of this kind. */
export function marksOf({ application, format }: FileKind): string {
  return `PRAGMA application_id = ${application}; PRAGMA user_version = ${format};`
}

// Entries that were appended together are one row (`rows.ts`), with the stream's number and the seq of the last entry in one
// integer as its key. So the entries of a stream are adjacent. The last row contains the length of a stream: a separate number
// would be one more page to write with each append.
const TABLES = `
CREATE TABLE counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE spaces(name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE collections(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, space TEXT NOT NULL, watched INTEGER NOT NULL) STRICT;
CREATE TABLE indexes(id INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL, paths TEXT NOT NULL, UNIQUE(collection, paths)) STRICT;
CREATE TABLE logs(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, space TEXT NOT NULL) STRICT;
CREATE TABLE records(id INTEGER PRIMARY KEY, collection INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, value TEXT NOT NULL, UNIQUE(collection, key)) STRICT;
CREATE TABLE places(idx INTEGER NOT NULL, position TEXT NOT NULL, record INTEGER NOT NULL, PRIMARY KEY(idx, position)) STRICT, WITHOUT ROWID;
CREATE TABLE streams(id INTEGER PRIMARY KEY AUTOINCREMENT, log INTEGER NOT NULL, name TEXT NOT NULL, UNIQUE(log, name)) STRICT;
CREATE TABLE entries(last INTEGER PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE leases(name TEXT PRIMARY KEY, holder TEXT NOT NULL, fence INTEGER NOT NULL, expires INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE feed(seq INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL, key TEXT NOT NULL, gone INTEGER NOT NULL, at INTEGER NOT NULL, UNIQUE(collection, key)) STRICT;
CREATE INDEX feed_gone ON feed(at) WHERE gone = 1;
INSERT INTO counters VALUES ('catalog', 0), ('fence', 0), ('fence_limit', 0), ('forgotten', 0), ('probe', 0);
${marksOf(STORE)}
`

/** The changes from each format to the next. */
const LIFTS = [
  'ALTER TABLE streams DROP COLUMN length',
  // a row can contain several entries now: an older svc with the file open must fail instead of misreading it
  'ALTER TABLE entries RENAME COLUMN id TO last',
]

/**
 * A stream's number and length. Statements about entries use `rowid`, because older formats, which svc also reads, have another
 * column name.
 */
export const STREAM = `SELECT id, coalesce((SELECT max(rowid) FROM entries WHERE rowid > streams.id << 32 AND rowid < (streams.id + 1) << 32) & 4294967295, 0) AS length
  FROM streams WHERE log = ? AND name = ?`

/** The clock of the machine in Unix milliseconds, in SQL. */
export const NOW = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)"

/** Opens the file for writing; creates it with its folder if `mayMake` allows it. */
export function openForWriting(path: string, { mayMake }: { mayMake: boolean }): DatabaseSync {
  if (!existsSync(path)) {
    if (!mayMake) throw gone()
    make(path)
  }
  // Without SQLite's busy handler, which starves one of two writers: each retries by itself.
  return opened(path, { timeout: 0, enableForeignKeyConstraints: false }, db => {
    if (!mayMake && formatOf(db) === 0) throw gone()
    prepare(db)
  })
}

/** Opens the file for reading; undefined while it has no tables. `timeout`: milliseconds to wait for a lock. */
export function openForReading(path: string, timeout = 0): DatabaseSync | undefined {
  if (!existsSync(path)) return undefined
  let hasTables = false
  const db = opened(path, { readOnly: true, timeout }, item => {
    item.exec('PRAGMA cache_size = -8000')
    hasTables = formatOf(item) !== 0
  })
  if (hasTables) return db
  db.close()
  return undefined
}

/** Opens and prepares the file; closes it if that fails. */
export function opened(path: string, options: DatabaseSyncOptions, ready: (db: DatabaseSync) => void): DatabaseSync {
  let db: DatabaseSync | undefined
  try {
    db = new DatabaseSync(path, options)
    ready(db)
    return db
  } catch (error) {
    db?.close()
    if (cannotOpen(error)) checkRights(path)
    throw error
  }
}

/**
 * Throws the system's error if the file or its folder is not writable: SQLite, which writes side files even to read, only
 * reports that it cannot open it. Opens nothing, because closing the file would release all locks of this process.
 */
function checkRights(path: string): void {
  if (!existsSync(path)) return
  accessSync(path, constants.R_OK | constants.W_OK)
  accessSync(dirname(path), constants.W_OK | constants.X_OK)
}

/**
 * Creates an empty file with its folder. Only its owner can read it, because it contains conversations. SQLite gives its side
 * files the same mode.
 */
export function make(path: string): void {
  const folder = dirname(path)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  closeSync(openSync(path, 'a', 0o600))
  // Its name must survive a power cut as well as its content.
  sync(folder)
}

/** Syncs a file, or the names in a folder, to disk. */
export function sync(path: string): void {
  const opened = openSync(path, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}

function prepare(db: DatabaseSync): void {
  db.exec(
    'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16000'
  )
  makeTables(db, STORE, TABLES)
  lift(db)
}

/** Upgrades a file of an older svc to the present format. */
function lift(db: DatabaseSync): void {
  if (formatOf(db) >= STORE.format) return
  inOne(db, () => {
    for (const statement of LIFTS.slice(formatOf(db) - 1)) db.exec(statement)
    db.exec(marksOf(STORE))
  })
}

/**
 * Marks a file that gets a full-text index, inside a transaction: an older svc, which would not keep the index, must refuse it.
 */
export function markTexts(db: DatabaseSync): void {
  db.exec(`${TEXTS} ${marksOf({ ...STORE, format: STORE.newest! })}`)
}

/** Creates the tables of an empty file; throws for a file of another program or of a newer format. */
export function makeTables(db: DatabaseSync, kind: FileKind, tables: string): void {
  if (formatOf(db, kind) !== 0) return
  inOne(db, () => {
    if (formatOf(db, kind) === 0) db.exec(tables)
  })
}

/** Runs a function in one transaction. */
function inOne(db: DatabaseSync, does: () => void): void {
  db.exec('BEGIN IMMEDIATE')
  try {
    does()
    db.exec('COMMIT')
  } catch (error) {
    db.exec('ROLLBACK')
    throw error
  }
}

function formatOf(db: DatabaseSync, { what, application: ours, format: own, newest: known = own }: FileKind = STORE): number {
  const { format, application, tables } = marksIn(db)
  if (format > known && application === ours) throw new FileRefusal('STORE_NEWER', what, format, known)
  if (application === ours && format > 0) return format
  if (format === 0 && application === 0 && tables === 0) return 0
  throw new FileRefusal('STORE_UNAVAILABLE', `${what} is a database of another program`, 'Set store.path to another file')
}

/** Reads a consistent state: another process may be creating the tables. */
function marksIn(db: DatabaseSync) {
  db.exec('SAVEPOINT marks')
  try {
    const tables = Number(db.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.n)
    return { format: pragma(db, 'user_version'), application: pragma(db, 'application_id'), tables }
  } finally {
    db.exec('RELEASE marks')
  }
}

function pragma(db: DatabaseSync, name: string): number {
  return Number(Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0])
}

/** A temporary name beside a file, short enough for any file system that allows the file's own name. */
export const partialOf = (file: string): string =>
  join(dirname(file), `.svc-partial-${process.pid}-${hash('sha256', basename(file)).slice(0, 8)}`)

/** Deletes the temporary file and SQLite's files beside it. */
export function dropPartial(partial: string): void {
  for (const side of ['', '-wal', '-shm', '-journal']) if (existsSync(partial + side)) rmSync(partial + side)
}
