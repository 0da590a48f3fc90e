import { hash } from 'node:crypto'
import { accessSync, closeSync, constants, existsSync, fsyncSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite'
import { cannotOpen, gone, Refusal } from './file-errors.ts'

/** What a file of svc's is marked with, so that no other program's database is taken for ours, and the version of its tables: a higher one is refused. */
export interface Kind {
  readonly what: string
  readonly application: number
  readonly format: number
}

/** "svc1" */
const STORE: Kind = { what: 'the store file', application: 0x73766331, format: 3 }

/** Marks a file as one of this kind. */
export function marksOf({ application, format }: Kind): string {
  return `PRAGMA application_id = ${application}; PRAGMA user_version = ${format};`
}

// What was appended at once is one row (`rows.ts`), known by its stream's number and the seq of its last entry in one integer: the entries of a stream lie
// together, and long ones stay in their leaf. How long a stream is its last row says: a number of its own would be one more page to write with each append.
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

/** What each format lacks that the next one has, from the first on. */
const LIFTS = [
  'ALTER TABLE streams DROP COLUMN length',
  // a row may have several entries now: an older svc that has the file open shall fail rather than take them for one
  'ALTER TABLE entries RENAME COLUMN id TO last',
]

/** A stream's number, and how many entries it has. `rowid`, as in all statements about entries: the column had another name in older formats, which may be read as they are. */
export const STREAM = `SELECT id, coalesce((SELECT max(rowid) FROM entries WHERE rowid > streams.id << 32 AND rowid < (streams.id + 1) << 32) & 4294967295, 0) AS length
  FROM streams WHERE log = ? AND name = ?`

/** Opens the file for writing; makes it, with its folder, when there is none and `mayMake` allows it. */
export function openForWriting(path: string, { mayMake }: { mayMake: boolean }): DatabaseSync {
  if (!existsSync(path)) {
    if (!mayMake) throw gone()
    make(path)
  }
  // Without the busy handler of SQLite, which starves one of two writers: who finds it busy tries again by itself.
  return opened(path, { timeout: 0, enableForeignKeyConstraints: false }, db => {
    if (!mayMake && formatOf(db) === 0) throw gone()
    prepare(db)
  })
}

/** Opens the file for reading; `undefined` while nobody has made its tables. `timeout`: milliseconds to wait where it is locked. */
export function openForReading(path: string, timeout = 0): DatabaseSync | undefined {
  if (!existsSync(path)) return undefined
  let hasTables = false
  const db = opened(path, { readOnly: true, timeout }, one => {
    one.exec('PRAGMA cache_size = -8000')
    hasTables = formatOf(one) !== 0
  })
  if (hasTables) return db
  db.close()
  return undefined
}

/** Opens the file and readies it; closes it where that fails. */
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
 * Throws what the system says where the file or its folder may not be written: SQLite, which needs its side files even to read, says no more than that it cannot
 * open it. Asks, and opens nothing: whoever closes a file lets go of all locks that this process has on it.
 */
function checkRights(path: string): void {
  if (!existsSync(path)) return
  accessSync(path, constants.R_OK | constants.W_OK)
  accessSync(dirname(path), constants.W_OK | constants.X_OK)
}

/** Makes an empty file, with its folder. Only its owner may read it: it holds conversations, or who asked. SQLite gives its side files the same mode. */
export function make(path: string): void {
  const folder = dirname(path)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  closeSync(openSync(path, 'a', 0o600))
  // Its name must survive a power cut as well as its content.
  sync(folder)
}

/** Brings a file, or the names in a folder, to the disk. */
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

/** Brings a file that an older svc made to the format of this one. */
function lift(db: DatabaseSync): void {
  if (formatOf(db) === STORE.format) return
  inOne(db, () => {
    for (const statement of LIFTS.slice(formatOf(db) - 1)) db.exec(statement)
    db.exec(marksOf(STORE))
  })
}

/** Makes the tables of a file that has none yet; throws where it is another program's, or of a newer format. */
export function makeTables(db: DatabaseSync, kind: Kind, tables: string): void {
  if (formatOf(db, kind) !== 0) return
  inOne(db, () => {
    if (formatOf(db, kind) === 0) db.exec(tables)
  })
}

/** Does something in one transaction. */
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

function formatOf(db: DatabaseSync, { what, application: ours, format: known }: Kind = STORE): number {
  const { format, application, tables } = marksIn(db)
  if (format > known && application === ours) throw new Refusal('STORE_NEWER', what, format, known)
  if (application === ours && format > 0) return format
  if (format === 0 && application === 0 && tables === 0) return 0
  throw new Refusal('STORE_UNAVAILABLE', `${what} is a database of another program`, 'set store.path to another file')
}

/** All as of one moment: another process may just be making the tables. */
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

/** A name beside a file for what is not that file yet: short, so that it can be had wherever the file's own can. */
export const partialOf = (file: string): string =>
  join(dirname(file), `.svc-partial-${process.pid}-${hash('sha256', basename(file)).slice(0, 8)}`)

/** Takes away what is left under that name, with all that SQLite puts beside it. */
export function dropPartial(partial: string): void {
  for (const side of ['', '-wal', '-shm', '-journal']) if (existsSync(partial + side)) rmSync(partial + side)
}
