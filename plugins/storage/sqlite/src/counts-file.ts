import { existsSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Kind, make, makeTables, marksOf, opened } from './file.ts'
import { isDamage } from './file-errors.ts'

// Counts lie in a file of their own beside the store: what is counted for each request must not wait for what is brought to the disk.
// A damaged one stays where it is, and one with the next number is begun: moving it away under processes that have it open would mix up the logs of both.

/** An open file of counts. */
export interface CountsFile {
  readonly db: DatabaseSync
  readonly file: string
  readonly number: number
  /** When it was begun in the place of a damaged one, Unix milliseconds. */
  readonly anewSince: number | undefined
}

/** "svc2" */
const COUNTS: Kind = { what: 'the file of counts', application: 0x73766332, format: 1 }
const TABLES = `
CREATE TABLE counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE counts(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, ends INTEGER NOT NULL, windows TEXT NOT NULL) STRICT;
CREATE INDEX counts_ends ON counts(ends);
INSERT INTO counters VALUES ('counts', 0), ('probe', 0);
${marksOf(COUNTS)}
`

/** The file of counts beside a store; 1 is the first one. */
export const countsFile = (store: string, number = 1): string => (number === 1 ? `${store}.counts` : `${store}.counts.${number}`)

/** Writes, and changes nothing that anybody counts. */
export const PROBE = "UPDATE counters SET value = value + 1 WHERE name = 'probe'"

/** Whether anything has been counted beside this store. */
export const hasCounts = (store: string): boolean => existsSync(countsFile(store)) || lastNumber(store) > 1

/** Opens the file of counts, made where there is none; a damaged one is given up for a new one. */
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

/** Has everybody go on with a new file. The damaged one is kept, the one before it is not. */
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
  // NORMAL: no commit waits for the disk, and a power cut takes the last of them but leaves no damage, as OFF could. A log of SQLite's is brought into the file
  // by the writer's thread alone.
  const db = opened(file, { timeout: 0 }, one => {
    one.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 16777216'
    )
    makeTables(one, COUNTS, TABLES + anew)
  })
  const value = db.prepare("SELECT value FROM counters WHERE name = 'anew'").get()?.value
  return { db, file, number, anewSince: value === undefined ? undefined : Number(value) }
}

/** From so many pages on the log is begun again; under load that must be forced, for somebody always adds to its end. */
const LONG_LOG = 4000
/** How long hits may keep it from that; then the next time has to do. */
const WAIT_MS = 20

/**
 * Brings the log of a file of counts into it, synced. Where that fails the log keeps it all, and the next time does both; what prevents it for good fails the
 * counting too, and is told there.
 */
export function settle(file: string): void {
  if (!existsSync(file)) return
  try {
    using db = new DatabaseSync(file, { timeout: WAIT_MS })
    const { log } = db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() ?? {}
    // SQLite syncs the first commit of a log: it is better made here than on the event loop.
    if (Number(log) >= LONG_LOG) db.exec(`PRAGMA synchronous = NORMAL; PRAGMA wal_checkpoint(RESTART); ${PROBE}`)
  } catch {
    // see above: nobody waits for this
  }
}

/** Moves what a former release counted in the store itself, so that an update forgets no day. Its table stays, empty: that release may still be running. */
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

/** What has been counted under a key since is newer than what is moved. On the disk by the end: the store forgets it next. */
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
