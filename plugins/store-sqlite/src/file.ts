import { accessSync, closeSync, constants, existsSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite'
import { cannotOpen, gone, Refusal } from './trouble.ts'

/** The version of the tables below; a file with a higher one is refused. */
const FORMAT = 1
/** Marks the file as svc's ("svc1"), so that no other program's database is taken for ours. */
const APPLICATION = 0x73766331

// A log entry's id is its stream's number and its seq in one integer: the entries of a stream lie together, and long ones stay in their leaf.
const TABLES = `
CREATE TABLE counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE spaces(name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE collections(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, space TEXT NOT NULL, watched INTEGER NOT NULL) STRICT;
CREATE TABLE indexes(id INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL, paths TEXT NOT NULL, UNIQUE(collection, paths)) STRICT;
CREATE TABLE logs(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, space TEXT NOT NULL) STRICT;
CREATE TABLE records(id INTEGER PRIMARY KEY, collection INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, value TEXT NOT NULL, UNIQUE(collection, key)) STRICT;
CREATE TABLE places(idx INTEGER NOT NULL, position TEXT NOT NULL, record INTEGER NOT NULL, PRIMARY KEY(idx, position)) STRICT, WITHOUT ROWID;
CREATE TABLE streams(id INTEGER PRIMARY KEY AUTOINCREMENT, log INTEGER NOT NULL, name TEXT NOT NULL, length INTEGER NOT NULL, UNIQUE(log, name)) STRICT;
CREATE TABLE entries(id INTEGER PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE leases(name TEXT PRIMARY KEY, holder TEXT NOT NULL, fence INTEGER NOT NULL, expires INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE feed(seq INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL, key TEXT NOT NULL, gone INTEGER NOT NULL, at INTEGER NOT NULL, UNIQUE(collection, key)) STRICT;
CREATE INDEX feed_gone ON feed(at) WHERE gone = 1;
INSERT INTO counters VALUES ('catalog', 0), ('fence', 0), ('fence_limit', 0), ('forgotten', 0), ('probe', 0);
PRAGMA application_id = ${APPLICATION};
PRAGMA user_version = ${FORMAT};
`

// What came later; a program that does not know of it leaves it alone, so the format stays.
const COUNTS = `
CREATE TABLE IF NOT EXISTS counts(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, ends INTEGER NOT NULL, windows TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS counts_ends ON counts(ends);
INSERT OR IGNORE INTO counters VALUES ('counts', 0);
`

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
function opened(path: string, options: DatabaseSyncOptions, ready: (db: DatabaseSync) => void): DatabaseSync {
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

// Only its owner may read it: it holds conversations. SQLite gives its side files the same mode.
function make(path: string): void {
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
  if (formatOf(db) !== 0 && db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'counts'").get()) return
  db.exec('BEGIN IMMEDIATE')
  try {
    if (formatOf(db) === 0) db.exec(TABLES)
    db.exec(COUNTS)
    db.exec('COMMIT')
  } catch (error) {
    db.exec('ROLLBACK')
    throw error
  }
}

function formatOf(db: DatabaseSync): number {
  const format = pragma(db, 'user_version')
  const application = pragma(db, 'application_id')
  const tables = db.prepare('SELECT count(*) AS n FROM sqlite_schema').get()
  if (format > FORMAT && application === APPLICATION) throw new Refusal('STORE_NEWER', 'the store file', format, FORMAT)
  if (application === APPLICATION && format > 0) return format
  if (format === 0 && application === 0 && tables?.n === 0) return 0
  throw new Refusal('STORE_UNAVAILABLE', 'the store file is a database of another program', 'set store.path to another file')
}

function pragma(db: DatabaseSync, name: string): number {
  return Number(Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0])
}
