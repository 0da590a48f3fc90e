import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { shownPath } from '@svc/core'
import type { Space } from '@svc/core/contracts'
import { entriesIn, loadFileCatalog, STORE_FILE_FORMATS, STORE_FILE_ID } from '@svc/storage-kit/store-file'
import type { StoredCatalog, StoredCollection } from '@svc/storage-kit/stored-catalog'
import { sourceInUse, sourceUnreadable } from './errors.ts'

/** A record with its version, or an entry: then `key` is its stream and `number` its seq. `value` is JSON. */
export interface MovedItem {
  readonly key: string
  readonly number: number
  readonly value: string
}

/** The state of a store file at one moment. Nothing is written to the file. */
export interface MigrationSource extends Disposable {
  readonly file: string
  readonly spaces: readonly Space[]
  /** The names of collections and logs, sorted: the order of the work. */
  readonly collections: readonly string[]
  readonly logs: readonly string[]
  /** The records, and the rows with entries: a row can have several. */
  readonly counts: { readonly records: number; readonly rows: number }
  /** Changes whenever a server uses the file. */
  readonly mark: string
  /** The mark of the file as it is now. */
  markNow(): string
  /** The records behind a key, by key. */
  records(collection: string, after: string): Iterable<MovedItem>
  /** The entries behind an entry, by stream and seq. */
  entries(log: string, stream: string, seq: number): Iterable<MovedItem>
}

/** Opens a store file of SQLite for reading, at the state of this moment. Throws MIGRATION_REFUSED, also if another program has it open. */
export function openSource(path: string): MigrationSource {
  if (!existsSync(path)) throw sourceUnreadable(shownPath(path), 'the file does not exist')
  refuseIfOpen(path)
  using stack = new DisposableStack()
  try {
    const db = stack.adopt(new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS }), item => item.close())
    checkFormat(db, path)
    db.exec('BEGIN')
    const catalog = loadFileCatalog(db)
    const mark = markIn(db)
    const source = {
      file: path,
      spaces: spacesOf(catalog),
      collections: [...catalog.collections.keys()].sort(),
      logs: [...catalog.logs.keys()].sort(),
      counts: countsIn(db),
      mark,
      markNow() {
        const now = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS })
        try {
          return markIn(now)
        } finally {
          now.close()
        }
      },
      records: (collection: string, after: string) => recordsIn(db, catalog.collections.get(collection)!.id, after),
      entries: (log: string, stream: string, seq: number) => entriesOf(db, catalog.logs.get(log)!.id, stream, seq),
    }
    const open = stack.move()
    return { ...source, [Symbol.dispose]: () => open.dispose() }
  } catch (error) {
    throw (error as { code?: unknown }).code === 'ERR_SQLITE_ERROR'
      ? sourceUnreadable(shownPath(path), String((error as Error).message), error)
      : error
  }
}

const BUSY_MS = 5_000
/** SQLite's code of a lock that another connection holds. */
const BUSY = 5

/** An exclusive lock is only given if no other connection is open, as of a server of any home. It is released at once. */
function refuseIfOpen(path: string): void {
  try {
    using db = new DatabaseSync(path, { timeout: 0 })
    db.exec('PRAGMA locking_mode = EXCLUSIVE')
    db.prepare('SELECT count(*) FROM sqlite_schema').get()
  } catch (error) {
    // other errors come again when the file is read
    if (((error as { errcode?: number }).errcode ?? 0) % 256 === BUSY) throw sourceInUse(shownPath(path))
  }
}

function checkFormat(db: DatabaseSync, path: string): void {
  const number = (name: string) => Number(Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0])
  const format = number('user_version')
  const [oldest, newest] = STORE_FILE_FORMATS
  if (number('application_id') !== STORE_FILE_ID || format === 0)
    throw sourceUnreadable(shownPath(path), 'it is no store file of svc')
  if (format < oldest) throw sourceUnreadable(shownPath(path), 'an older svc wrote it: start this svc with it once')
  if (format > newest) throw sourceUnreadable(shownPath(path), 'a newer svc wrote it: use that svc')
}

const markIn = (db: DatabaseSync): string =>
  JSON.stringify([
    db.prepare('SELECT name, value FROM counters ORDER BY name').all(),
    db
      .prepare(
        'SELECT (SELECT max(id) FROM records) AS records, (SELECT max(rowid) FROM entries) AS entries, (SELECT max(seq) FROM feed) AS feed'
      )
      .get(),
    db.prepare('SELECT count(*) AS records, sum(version) AS versions FROM records').get(),
    db.prepare('SELECT count(*) AS entries FROM entries').get(),
  ])

const countsIn = (db: DatabaseSync) => ({
  records: Number(db.prepare('SELECT count(*) AS n FROM records').get()!.n),
  rows: Number(db.prepare('SELECT count(*) AS n FROM entries').get()!.n),
})

/** The declarations of the spaces, with made-up names of indexes: their paths identify them. */
function spacesOf({ spaces, collections, logs }: StoredCatalog): Space[] {
  return [...spaces].map(([name, version]) => ({
    name,
    version,
    collections: Object.fromEntries(
      [...collections].filter(([, item]) => item.space === name).map(([collection, item]) => [collection, declarationOf(item)])
    ),
    logs: [...logs].filter(([, log]) => log.space === name).map(([log]) => log),
  }))
}

const declarationOf = ({ watched, lasting, indexes, texts }: StoredCollection) => ({
  watched,
  lasting,
  indexes: Object.fromEntries(indexes.map(({ id, paths }) => [`index_${id}`, paths])),
  text: Object.fromEntries(texts.map(({ id, fields }) => [`text_${id}`, fields])),
})

function* recordsIn(db: DatabaseSync, collection: number, after: string): Iterable<MovedItem> {
  const rows = db.prepare('SELECT key, version, value FROM records WHERE collection = ? AND key > ? ORDER BY key')
  for (const { key, version, value } of rows.iterate(collection, after))
    yield { key: String(key), number: Number(version), value: String(value) }
}

function* entriesOf(db: DatabaseSync, log: number, from: string, seq: number): Iterable<MovedItem> {
  const streams = db.prepare('SELECT id, name FROM streams WHERE log = ? AND name >= ? ORDER BY name')
  // the number of a stream and the seq of the last entry of a row are one integer
  const rows = db.prepare(
    'SELECT rowid & 4294967295 AS last, value FROM entries WHERE rowid > ? << 32 AND rowid < (? + 1) << 32 ORDER BY rowid'
  )
  for (const { id, name } of streams.iterate(log, from)) {
    const key = String(name)
    const behind = key === from ? seq : 0
    for (const { last, value } of rows.iterate(id!, id!)) {
      const texts = textsIn(String(value))
      const first = Number(last) - texts.length + 1
      for (const [at, text] of texts.entries()) if (first + at > behind) yield { key, number: first + at, value: text }
    }
  }
}

/** The entries of a row, as JSON. */
const textsIn = (text: string): readonly string[] =>
  text.startsWith(' ') ? entriesIn(text, JSON.parse).map(entry => JSON.stringify(entry)) : [text]
