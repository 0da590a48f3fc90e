import { existsSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type FileKind, make, makeTables, marksOf, opened } from './file.ts'
import { isDamage } from './file-errors.ts'

// Counts have their own file beside the store, so that a request does not wait for the disk. A damaged file stays, and a new
// one with the next number begins: moving a file that other processes have open would mix up the logs of both.

/** An open file of counts. */
export interface CountsFile {
  readonly db: DatabaseSync
  readonly file: string
  readonly number: number
  /** When it began instead of a damaged one, in Unix milliseconds. */
  readonly anewSince: number | undefined
}

/** "svc2" */
const COUNTS: FileKind = { what: 'the file of counts', application: 0x73766332, format: 1 }
const TABLES = `
CREATE TABLE counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE counts(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, ends INTEGER NOT NULL, windows TEXT NOT NULL) STRICT;
CREATE INDEX counts_ends ON counts(ends);
INSERT INTO counters VALUES ('counts', 0), ('probe', 0);
${marksOf(COUNTS)}
`

/** Path of the file of counts beside a store, beginning with 1. */
export const countsFile = (store: string, number = 1): string => (number === 1 ? `${store}.counts` : `${store}.counts.${number}`)

/** A write that changes no counts. */
export const PROBE = "UPDATE counters SET value = value + 1 WHERE name = 'probe'"

/** Whether anything was counted for this store. */
export const hasCounts = (store: string): boolean => existsSync(countsFile(store)) || lastNumber(store) > 1

/** Opens or creates the file of counts; replaces a damaged one. */
export function openCounts(store: string): CountsFile {
  const number = lastNumber(store)
  try {
    return open(store, number)
  } catch (error) {
    if (!isDamage(error)) throw error
    beginAnew(store, number)
    return open(store, number + 1)
  }
}

/** Begins a new file for all processes. Keeps the damaged one, and deletes the one before it. */
export function beginAnew(store: string, damaged: number): void {
  make(countsFile(store, damaged + 1))
  if (damaged > 1) for (const side of ['', '-wal', '-shm']) rmSync(countsFile(store, damaged - 1) + side, { force: true })
}

function lastNumber(store: string): number {
  const start = `${basename(store)}.counts.`
  if (!existsSync(dirname(store))) return 1
  const ends = readdirSync(dirname(store)).flatMap(name => (name.startsWith(start) ? [name.slice(start.length)] : []))
  return Math.max(1, ...ends.filter(end => /^\d+$/.test(end)).map(Number))
}

function open(store: string, number: number): CountsFile {
  const file = countsFile(store, number)
  if (!existsSync(file)) make(file)
  const anew = number === 1 ? '' : `INSERT INTO counters VALUES ('anew', ${Date.now()});`
  // With NORMAL, no commit waits for the disk. A power cut loses the last commits but causes no damage, as OFF could. Only the
  // writer's thread checkpoints the log.
  const db = opened(file, { timeout: 0 }, item => {
    item.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 16777216'
    )
    makeTables(item, COUNTS, TABLES + anew)
  })
  const value = db.prepare("SELECT value FROM counters WHERE name = 'anew'").get()?.value
  return { db, file, number, anewSince: value === undefined ? undefined : Number(value) }
}

/** Pages after which the log must restart; under load this must be forced, because other processes append. */
const LONG_LOG = 4000
/** How long hits may delay it before it is skipped. */
const WAIT_MS = 20

/**
 * Checkpoints the log of a file of counts, synced. If that fails, the log keeps the data for the next time; permanent errors
 * also fail the counting, which reports them.
 */
export function settle(file: string): void {
  if (!existsSync(file)) return
  try {
    using db = new DatabaseSync(file, { timeout: WAIT_MS })
    const { log } = db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() ?? {}
    // SQLite syncs the first commit of a log: better here than on the event loop.
    if (Number(log) >= LONG_LOG) db.exec(`PRAGMA synchronous = NORMAL; PRAGMA wal_checkpoint(RESTART); ${PROBE}`)
  } catch {
    // a later checkpoint does it
  }
}

/**
 * Moves the counts of a former release out of the store, so that an update forgets no day. Its table stays, empty, because that
 * release may still run.
 */
export function moveCounts(store: DatabaseSync, path: string): void {
  if (!store.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'counts'").get()) return
  if (!store.prepare('SELECT 1 FROM counts LIMIT 1').get()) return
  using to = openCounts(path).db
  store.exec('BEGIN IMMEDIATE')
  try {
    copyCounts(store, to)
    store.exec("DELETE FROM counts; UPDATE counters SET value = 0 WHERE name = 'counts'; COMMIT")
  } catch (error) {
    if (store.isTransaction) store.exec('ROLLBACK')
    throw error
  }
}

/** Newer counts of a key take precedence. Synced at the end, because the store then deletes its counts. */
function copyCounts(from: DatabaseSync, to: DatabaseSync): void {
  const insert = to.prepare('INSERT OR IGNORE INTO counts(key, ends, windows) VALUES (?, ?, ?)')
  to.exec('BEGIN IMMEDIATE')
  for (const { key, ends, windows } of from
    .prepare('SELECT key, ends, windows FROM counts WHERE ends > ? ORDER BY id')
    .iterate(Date.now()))
    insert.run(String(key), Number(ends), String(windows))
  to.exec(
    "UPDATE counters SET value = (SELECT count(*) FROM counts) WHERE name = 'counts'; COMMIT; PRAGMA wal_checkpoint(PASSIVE)"
  )
}
