import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { storeUnavailable } from '@svc/storage-kit'

const TABLES = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  BEGIN IMMEDIATE;
  CREATE TABLE IF NOT EXISTS spaces (name TEXT PRIMARY KEY, version INTEGER) STRICT;
  CREATE TABLE IF NOT EXISTS records (collection TEXT, key TEXT, version INTEGER, value TEXT, PRIMARY KEY (collection, key)) STRICT;
  CREATE TABLE IF NOT EXISTS entries (log TEXT, id TEXT, seq INTEGER, value TEXT, PRIMARY KEY (log, id, seq)) STRICT;
  CREATE TABLE IF NOT EXISTS counts (key TEXT PRIMARY KEY, kept TEXT, ends INTEGER) STRICT;
  CREATE INDEX IF NOT EXISTS counts_by_end ON counts (ends);
  CREATE TABLE IF NOT EXISTS leases (fence INTEGER PRIMARY KEY AUTOINCREMENT, lease TEXT UNIQUE, holder TEXT, expires INTEGER) STRICT;
  CREATE TABLE IF NOT EXISTS changes (seq INTEGER PRIMARY KEY AUTOINCREMENT, collection TEXT, key TEXT, at INTEGER, UNIQUE (collection, key)) STRICT;
  CREATE INDEX IF NOT EXISTS changes_by_time ON changes (at);
  COMMIT;
`

/** How long a process waits for the write lock: during a reload two processes use the file. */
const BUSY_MS = 5000

/**
 * Opens the file of a store.
 * @param {string} file
 */
export function openDrawers(file) {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  // The file contains conversations, so only its owner can read it.
  closeSync(openSync(file, 'a', 0o600))
  const db = new DatabaseSync(file, { timeout: BUSY_MS })
  db.exec(TABLES)

  /** @type {<T>(work: () => T) => T} Runs `work` in one transaction. */
  const atOnce = work => {
    try {
      db.exec('BEGIN IMMEDIATE')
      const done = work()
      db.exec('COMMIT')
      return done
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK')
      throw error.code === 'ERR_SQLITE_ERROR' ? storeUnavailable(error.message, 'see to the disk, and ask again', error) : error
    }
  }

  const now = db.prepare("SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) AS now")
  /** The clock of the machine in Unix milliseconds: the same for all processes that use the file. */
  const clock = () => Number(now.get().now)

  return { db, atOnce, clock, close: () => db.close() }
}
