import type { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import type { IndexPaths, LogEntry, LogQuery, RangePage, StoreRecord, TextHit, TextPage } from '@svc/core/contracts'
import { type CheckedSearch, createSnippets, cursorOf, type Span, TEXT_LIMITS } from '@svc/storage-kit'
import { entriesIn, loadFileCatalog } from '@svc/storage-kit/store-file'
import { indexOf, type StoredCatalog, textOf } from '@svc/storage-kit/stored-catalog'
import { fileGone, readError } from './errors.ts'
import { isBusy, isFileError, parsed } from './file-errors.ts'
import { NOW, openForReading, STREAM } from './file.ts'
import { type Identity, identityOf, isThere, setAside } from './identity.ts'
import type { Tails } from './rows.ts'
import { matchExpression, searchIn } from './text-tables.ts'

/** Reads on the calling thread, through a separate connection that no write blocks. */
export interface Reader {
  /** Runs reads on the open file; waits for locks, and reopens it after errors. Throws the errors of the contract. */
  reading<T>(read: (reads: Reads) => T, signal?: AbortSignal): Promise<T>
  /** The present catalog of the file; undefined if it does not exist yet. */
  catalog(): Promise<StoredCatalog | undefined>
  /** Reopens the file at the next read. */
  reset(): void
}

interface Open {
  readonly db: DatabaseSync
  readonly reads: Reads
  readonly identity: Identity | undefined
  catalog: StoredCatalog
}

/** Options of a reader. */
export interface ReaderOptions {
  readonly path: string
  readonly busyMs: number
  readonly tails: Tails
  /** Receives the error of a read, and returns it. */
  readonly failed: <T>(error: T) => T
}

const RETRY_MS = 2
/** How soon it notices that the file was removed or replaced, in milliseconds. */
const LOOK_MS = 50

/** Creates a reader; opens nothing yet. */
export function createReader({ path, busyMs, tails, failed }: ReaderOptions): Reader {
  const keeper = createKeeper(path, tails)

  const attempt = async <T>(work: () => T, signal?: AbortSignal): Promise<T> => {
    for (const until = performance.now() + busyMs; ; ) {
      try {
        return work()
      } catch (error) {
        if (isFileError(error) && !isBusy(error)) keeper.reset()
        if (!isBusy(error) || performance.now() >= until) throw failed(readError(error, path))
      }
      await setTimeout(RETRY_MS, undefined, signal ? { signal } : {})
    }
  }
  return {
    reading: (read, signal) =>
      attempt(() => {
        const connection = keeper.connect()
        if (!connection) throw fileGone(path)
        return read(connection.reads)
      }, signal),
    catalog: () =>
      attempt(() => {
        const connection = keeper.connect()
        if (connection) connection.catalog = loadFileCatalog(connection.db)
        return connection?.catalog
      }),
    reset: () => keeper.reset(),
  }
}

/** Holds the open file until it is given up or replaced. */
function createKeeper(path: string, tails: Tails): { connect(): Open | undefined; reset(): void } {
  let open: Open | undefined
  let former: Identity | undefined
  let opens = 0
  let looked = 0

  const reset = () => {
    const { db } = open ?? {}
    open = undefined
    tails.clear()
    try {
      db?.close()
    } catch {
      // A broken file may not even close; the connection is given up nevertheless.
    }
  }
  const opened = (db: DatabaseSync): Open => {
    const identity = (former = identityOf(path))
    const reads = createReads(db, tails, { catalog: () => fresh.catalog, file: `${identity?.file}`, version: ++opens })
    const fresh: Open = { db, identity, catalog: loadFileCatalog(db), reads }
    return fresh
  }
  const reopen = (): Open | undefined => {
    if (former) setAside(path, former)
    const db = openForReading(path)
    if (!db) return undefined
    try {
      return (open = opened(db))
    } catch (error) {
      db.close()
      throw error
    }
  }
  return {
    connect() {
      if (open && performance.now() - looked > LOOK_MS) {
        looked = performance.now()
        if (!open.identity || !isThere(open.identity, path)) reset()
      }
      return open ?? reopen()
    },
    reset,
  }
}

/** A position in the feed of one file: a replaced file has another feed. */
export interface FeedPlace {
  readonly file: string
  readonly seq: number
}

/** A change in the feed of watched collections. */
export interface FeedRow {
  readonly seq: number
  readonly key: string
  readonly record?: StoreRecord
}

/** The reads of the store. */
interface Reads {
  get(collection: string, key: string): StoreRecord | undefined
  range(collection: string, paths: IndexPaths, span: Span, reverse: boolean, limit: number): RangePage
  read(log: string, id: string, query: LogQuery): LogEntry[]
  search(collection: string, search: CheckedSearch, limit: number): TextPage
  /** Milliseconds until a lease expires, by the clock of the machine; 0 or less if it is free. */
  busyMs(lease: string): number
  feedEnd(): FeedPlace
  /** At most `limit` changes after a position; undefined if later deletions were forgotten, or the file was replaced. */
  feed(collection: string, place: FeedPlace, limit: number): FeedRow[] | undefined
  /** Differs after any commit of any process. */
  dataVersion(): string
  probed(): number
  /** The clock of the machine in Unix milliseconds. */
  clock(): number
  /** The spaces by name, with the versions of their data. */
  spaces(): { name: string; version: number }[]
}

/** Greater than every text: in SQLite every blob is. */
const NO_END = new Uint8Array()
/** Characters of values after which a page ends. */
const PAGE_CHARS = 8 * 1024 * 1024

/** The open file. */
interface OpenFile {
  readonly catalog: () => StoredCatalog
  readonly file: string
  /** How often a file was opened before. */
  readonly version: number
}

/** Prepares each statement at its first use. */
function createReads(db: DatabaseSync, tails: Tails, { catalog, file, version }: OpenFile): Reads {
  const prepare = lazily(db)
  const rangeRows = (statements: RangeStatements, reverse: boolean, owner: number, span: Span, limit: number) => {
    const sql = statements[reverse ? 'backward' : 'forward'][span.behind ? 'behind' : 'from']
    return prepare(sql).iterate(owner, span.low, span.high ?? NO_END, limit + 1)
  }
  return {
    get(name, key) {
      const collection = catalog().collections.get(name)
      const row = collection && prepare(GET).get(collection.id, key)
      return row && { key, version: Number(row.version), value: parsed(row.value) }
    },
    range(name, paths, span, reverse, limit) {
      const collection = catalog().collections.get(name)
      const owner = paths.length === 0 ? collection?.id : indexOf(collection, paths)
      if (owner === undefined) return { records: [] }
      return page(rangeRows(paths.length === 0 ? BY_KEY : BY_INDEX, reverse, owner, span, limit), limit)
    },
    read(name, id, query) {
      const log = catalog().logs.get(name)
      const head = log && prepare(STREAM).get(log.id, id)
      if (!head) return []
      const [stream, length] = [Number(head.id), Number(head.length)]
      const [from, to] = seqs(query, length)
      const entries =
        tails.read(stream, from, to) ??
        entriesOf(
          prepare(ENTRIES).iterate(stream, from, stream),
          from,
          to,
          to === length ? (found, chars) => tails.saw(stream, found, chars) : undefined
        )
      return query.reverse ? entries.reverse() : entries
    },
    search(name, search, limit) {
      const text = textOf(catalog().collections.get(name), search.fields)
      const match = text && matchExpression(text.fields, search.parsed, search.filter)
      if (match === undefined) return { hits: [] }
      const { score = Number.MAX_VALUE, key = '' } = search.after ?? {}
      return hitPage(prepare(searchIn(text!.id, TEXT_LIMITS.matches)).iterate(match, score, key, limit + 1), search, limit)
    },
    busyMs: lease => Number(prepare(BUSY_MS).get(lease)?.ms ?? 0),
    feedEnd: () => ({ file, seq: Number(prepare("SELECT seq FROM sqlite_sequence WHERE name = 'feed'").get()?.seq ?? 0) }),
    feed(name, { file: fileThen, seq }, limit) {
      if (fileThen !== file || seq < Number(prepare("SELECT value FROM counters WHERE name = 'forgotten'").get()!.value))
        return undefined
      const collection = catalog().collections.get(name)
      return collection ? prepare(FEED).all(seq, collection.id, limit).map(feedRow) : []
    },
    dataVersion: () => `${version}/${Number(prepare('PRAGMA data_version').get()!.data_version)}`,
    probed: () => Number(prepare("SELECT value FROM counters WHERE name = 'probe'").get()!.value),
    clock: () => Number(prepare(`SELECT ${NOW} AS now`).get()!.now),
    spaces: () =>
      prepare('SELECT name, version FROM spaces ORDER BY name')
        .all()
        .map(({ name, version }) => ({ name: String(name), version: Number(version) })),
  }
}

const GET = 'SELECT version, value FROM records WHERE collection = ? AND key = ?'
/** The statements of a range: by direction, and with or without its first position. */
type RangeStatements = Readonly<Record<'forward' | 'backward', Readonly<Record<'from' | 'behind', string>>>>
const rangeStatements = (sql: (compare: string, order: string) => string): RangeStatements => ({
  forward: { from: sql('>=', 'ASC'), behind: sql('>', 'ASC') },
  backward: { from: sql('>=', 'DESC'), behind: sql('>', 'DESC') },
})
const BY_KEY = rangeStatements(
  (compare, order) =>
    `SELECT key, version, value, key AS position FROM records WHERE collection = ? AND key ${compare} ? AND key < ? ORDER BY key ${order} LIMIT ?`
)
const BY_INDEX = rangeStatements(
  (compare, order) => `SELECT r.key, r.version, r.value, p.position FROM places p CROSS JOIN records r ON r.id = p.record
  WHERE p.idx = ? AND p.position ${compare} ? AND p.position < ? ORDER BY p.position ${order} LIMIT ?`
)
const BUSY_MS = `SELECT expires - ${NOW} AS ms FROM leases WHERE name = ?`
const ENTRIES =
  'SELECT rowid & 4294967295 AS last, value FROM entries WHERE rowid >= ((? << 32) | ?) AND rowid < ((? + 1) << 32) ORDER BY rowid'
const FEED = `SELECT f.seq, f.key, r.version, r.value FROM feed f LEFT JOIN records r ON r.collection = f.collection AND r.key = f.key
  WHERE f.seq > ? AND f.collection = ? ORDER BY f.seq LIMIT ?`

type Row = NonNullable<ReturnType<ReturnType<DatabaseSync['prepare']>['get']>>

function lazily(db: DatabaseSync) {
  const prepared = new Map<string, ReturnType<DatabaseSync['prepare']>>()
  return (sql: string) => {
    let statement = prepared.get(sql)
    if (!statement) prepared.set(sql, (statement = db.prepare(sql)))
    return statement
  }
}

const recordOf = (row: Row): StoreRecord => ({
  key: String(row.key),
  version: Number(row.version),
  value: parsed(row.value),
})

/** The first and the last requested seq. */
function seqs({ from, reverse, limit }: LogQuery, length: number): [from: number, to: number] {
  const to = Math.min(length, reverse ? (from ?? length) : (from ?? 1) + limit - 1)
  return [reverse ? Math.max(1, to - limit + 1) : (from ?? 1), to]
}

function entriesOf(
  rows: Iterable<Row>,
  from: number,
  to: number,
  saw: ((entries: LogEntry[], chars: number) => void) | undefined
): LogEntry[] {
  let chars = 0
  const entries: LogEntry[] = []
  for (const row of rows) {
    const text = String(row.value)
    chars += text.length
    const values = entriesIn(text, parsed)
    const first = Number(row.last) - values.length + 1
    for (let seq = Math.max(first, from); seq <= to && seq < first + values.length; seq++)
      entries.push({ seq, value: values[seq - first]! })
    if (Number(row.last) >= to) break
  }
  saw?.(entries, chars)
  return entries
}

function feedRow(row: Row): FeedRow {
  const base = { seq: Number(row.seq), key: String(row.key) }
  return row.version === null ? base : { ...base, record: recordOf(row) }
}

function page(rows: Iterable<Row>, limit: number): RangePage {
  const records: StoreRecord[] = []
  let position = ''
  let chars = 0
  for (const row of rows) {
    if (records.length === limit || chars > PAGE_CHARS) return { records, next: cursorOf(position) }
    records.push(recordOf(row))
    position = String(row.position)
    chars += String(row.value).length
  }
  return { records }
}

function hitPage(rows: Iterable<Row>, { fields, parsed, cursorOf: cursorBehind }: CheckedSearch, limit: number): TextPage {
  const snippets = createSnippets(parsed)
  const hits: TextHit[] = []
  let chars = 0
  for (const row of rows) {
    const last = hits.at(-1)
    if (last && (hits.length === limit || chars > PAGE_CHARS))
      return { hits, next: cursorBehind({ score: last.score, key: last.record.key }) }
    const record = recordOf(row)
    hits.push({ record, score: Number(row.score), snippets: snippets.of(fields.fields, record.value) })
    chars += String(row.value).length
  }
  return { hits }
}
