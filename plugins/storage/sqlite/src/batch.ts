import type { DatabaseSync } from 'node:sqlite'
import type { Json, Space } from '@svc/core/contracts'
import { sortKey } from '@svc/storage-kit/sort-key'
import type { StoredCatalog, StoredCollection } from '@svc/storage-kit/stored-catalog'
import { noteMigrated } from './catalog.ts'
import { RowCache, type StoredRow } from './rows.ts'
import { expect, parsed, FileRefusal } from './file-errors.ts'
import { createTextTables } from './text-tables.ts'
import type { WireOp } from './wire.ts'
import { STREAM } from './file.ts'

/** The state of the writer during a batch. */
export interface BatchContext {
  catalog: StoredCatalog
  /** Spaces as this process declares them. */
  readonly spaces: Map<string, Space>
}

/** Performs the operations of batches inside a transaction. */
export interface Batches {
  /**
   * Returns versions and last seqs, then the number of each stream that was appended to. Throws a Refusal, possibly after part
   * of the batch.
   */
  run(ops: readonly WireOp[]): number[]
  /** Whether a watched collection changed since the last call. */
  takeWatched(): boolean
  /** Clears the caches: the file may have changed. */
  forget(): void
}

/** Prepares the statements of one connection. */
export function createBatches(db: DatabaseSync, context: BatchContext): Batches {
  const records = createRecords(db)
  const entries = createEntries(db)
  const single = (op: WireOp, at: number): number => {
    const { catalog } = context
    if (op[0] === 'put') return records.put(at, catalog.collections.get(op[1])!, op[2], op[3], op[4])
    if (op[0] === 'append') return entries.append(at, catalog.logs.get(op[1])!.id, op[2], op[3], op[4])
    if (op[0] === 'delete') return records.remove(at, catalog.collections.get(op[1])!, op[2], op[3])
    if (op[0] === 'drop') return entries.drop(catalog.logs.get(op[1])!.id, op[2])
    noteMigrated(db, context.spaces.get(op[1])!, op[2])
    return 0
  }
  return {
    run(ops) {
      entries.takeStreams() // drops those of a refused batch
      for (const op of ops) check(op, context)
      const results = ops.map(single)
      return [...results, ...entries.takeStreams()]
    },
    takeWatched: () => records.takeWatched(),
    forget() {
      entries.forget()
      records.forget()
    },
  }
}

function check(op: WireOp, { catalog, spaces }: BatchContext): void {
  if (op[0] === 'migrated') {
    if (!spaces.has(op[1])) throw new FileRefusal('STORE_UNKNOWN', 'space', op[1])
    return
  }
  const isRecord = op[0] === 'put' || op[0] === 'delete'
  const owner = isRecord ? catalog.collections.get(op[1]) : catalog.logs.get(op[1])
  if (!owner) throw new FileRefusal('STORE_UNKNOWN', isRecord ? 'collection' : 'log', op[1])
  // A process that knows an older version of a space must not write its old format into migrated data.
  const stored = catalog.spaces.get(owner.space) ?? 0
  const known = spaces.get(owner.space)?.version ?? 0
  if (stored > known) throw new FileRefusal('STORE_NEWER', `the space "${owner.space}"`, stored, known)
}

/** A record with its positions in the indexes of its collection. */
interface IndexedRecord {
  readonly id: number
  version: number
  positions: readonly string[]
}

function createRecords(db: DatabaseSync) {
  const s = statements(db)
  const indexing = createIndexing(db)
  // records are often written again soon: the cache saves reading the former value
  const known = new RowCache<IndexedRecord>()
  let watched = false

  const load = (collection: StoredCollection, key: string): IndexedRecord | undefined => {
    const hasIndexes = collection.indexes.length > 0
    const row = (hasIndexes ? s.findWhole : s.find).get(collection.id, key)
    if (!row) return undefined
    const positions = hasIndexes ? positionsOf(collection, key, parsed(row.value)) : []
    return { id: Number(row.id), version: Number(row.version), positions }
  }
  const find = (collection: StoredCollection, key: string) => known.get(nameOf(collection, key)) ?? load(collection, key)
  const recordChange = ({ id, watched: isWatched }: StoredCollection, key: string, gone: number) => {
    if (!isWatched) return
    watched = true
    s.feed.run(id, key, gone, Date.now())
  }
  const insert = (at: number, collection: StoredCollection, key: string, text: string) => {
    const { changes, lastInsertRowid } = s.insert.run(collection.id, key, text)
    if (changes === 0) throw new FileRefusal('STORE_CONFLICT', at, 0, Number(s.find.get(collection.id, key)!.version))
    const id = Number(lastInsertRowid)
    const positions = indexing.put(collection, id, key, text)
    return known.keep(nameOf(collection, key), { id, version: 1, positions }).version
  }
  const replace = (at: number, collection: StoredCollection, key: string, text: string, expected: number) => {
    const held = find(collection, key)
    expect(at, expected, held?.version ?? 0)
    if (!held) return insert(at, collection, key, text)
    s.update.run(++held.version, text, held.id)
    held.positions = indexing.put(collection, held.id, key, text, held.positions)
    return known.keep(nameOf(collection, key), held).version
  }
  return {
    put(at: number, collection: StoredCollection, key: string, text: string, expected: number): number {
      const version = expected === 0 ? insert(at, collection, key, text) : replace(at, collection, key, text, expected)
      recordChange(collection, key, 0)
      return version
    },
    remove(at: number, collection: StoredCollection, key: string, expected: number): number {
      const held = find(collection, key)
      expect(at, expected, held?.version ?? 0)
      if (!held) return 0
      known.delete(nameOf(collection, key))
      s.remove.run(held.id)
      indexing.remove(collection, held)
      recordChange(collection, key, 1)
      return 0
    },
    takeWatched() {
      const was = watched
      watched = false
      return was
    },
    forget: () => known.clear(),
  }
}

const nameOf = ({ id }: StoredCollection, key: string) => `${id}/${key}`

/** The value of a record, if its collection has indexes to compute. */
const valueOf = ({ indexes, texts }: StoredCollection, text: string) =>
  indexes.length > 0 || texts.length > 0 ? (JSON.parse(text) as Json) : null
const positionsOf = ({ indexes }: StoredCollection, key: string, value: Json) =>
  indexes.map(({ paths }) => sortKey(paths, value, key))

/** Keeps the indexes of collections up to date, full-text indexes included. */
function createIndexing(db: DatabaseSync) {
  const place = createPlaces(db)
  const texts = createTextTables(db)
  return {
    /** Writes a record into the indexes and returns its positions; `before` are those of an existing record. */
    put(collection: StoredCollection, id: number, key: string, text: string, before?: readonly string[]): readonly string[] {
      const value = valueOf(collection, text)
      const positions = positionsOf(collection, key, value)
      place(collection, id, before ?? [], positions)
      texts.put(collection.texts, id, value, before === undefined)
      return positions
    },
    remove(collection: StoredCollection, { id, positions }: IndexedRecord): void {
      place(collection, id, positions, [])
      texts.remove(collection.texts, id)
    },
  }
}

/** Moves a record in the indexes of its collection. An empty list of positions means that it is not in them. */
function createPlaces(db: DatabaseSync) {
  const put = db.prepare('INSERT INTO places VALUES (?, ?, ?)')
  const take = db.prepare('DELETE FROM places WHERE idx = ? AND position = ?')
  return ({ indexes }: StoredCollection, id: number, before: readonly string[], after: readonly string[]) => {
    indexes.forEach(({ id: index }, at) => {
      const [from, to] = [before[at], after[at]]
      if (from === to) return
      if (from !== undefined) take.run(index, from)
      if (to !== undefined) put.run(index, to, id)
    })
  }
}

const statements = (db: DatabaseSync) => ({
  find: db.prepare('SELECT id, version FROM records WHERE collection = ? AND key = ?'),
  findWhole: db.prepare('SELECT id, version, value FROM records WHERE collection = ? AND key = ?'),
  insert: db.prepare('INSERT INTO records(collection, key, version, value) VALUES (?, ?, 1, ?) ON CONFLICT DO NOTHING'),
  update: db.prepare('UPDATE records SET version = ?, value = ? WHERE id = ?'),
  remove: db.prepare('DELETE FROM records WHERE id = ?'),
  feed: db.prepare('INSERT OR REPLACE INTO feed(collection, key, gone, at) VALUES (?, ?, ?, ?)'),
})

/** The streams of all logs, changed by the writer inside a transaction. */
interface Entries {
  /** Returns the seq of the last entry. */
  append(at: number, log: number, id: string, ifLength: number, rows: readonly StoredRow[]): number
  drop(log: number, id: string): number
  /** The numbers of the streams that were appended to since the last call. */
  takeStreams(): number[]
  /** Clears the cache: another process has written, or something was rolled back. */
  forget(): void
}

/** A stream and its length. */
interface Stream {
  readonly id: number
  length: number
}

/** Prepares the statements of one connection. */
function createEntries(db: DatabaseSync): Entries {
  const s = entryStatements(db)
  // Finding a stream takes as long as writing to it, and a writer appends again soon.
  const known = new RowCache<Stream>()
  let streams: number[] = []

  const find = (log: number, id: string) => {
    const key = keyOf(log, id)
    const there = known.get(key)
    const row = there ? undefined : s.find.get(log, id)
    return row ? known.keep(key, { id: Number(row.id), length: Number(row.length) }) : there
  }
  const begin = (log: number, id: string) => {
    const { changes, lastInsertRowid } = s.begin.run(log, id)
    return changes === 0 ? undefined : known.keep(keyOf(log, id), { id: Number(lastInsertRowid), length: 0 })
  }
  /** Creates an unknown stream at once if it can be new: most streams are. */
  const streamFor = (log: number, id: string, ifLength: number) =>
    (ifLength > 0 || known.has(keyOf(log, id)) ? undefined : begin(log, id)) ?? find(log, id)
  const write = (stream: Stream, rows: readonly StoredRow[]) => {
    for (const [count, text] of rows) s.append.run(stream.id, (stream.length += count), text)
    streams.push(stream.id)
    return stream.length
  }
  return {
    append(at, log, id, ifLength, rows) {
      const stream = rows.length === 0 ? find(log, id) : streamFor(log, id, ifLength)
      const length = stream?.length ?? 0
      expect(at, ifLength, length)
      return stream && rows.length > 0 ? write(stream, rows) : length
    },
    drop(log, id) {
      const stream = find(log, id)
      if (!stream) return 0
      known.delete(keyOf(log, id))
      s.dropEntries.run(stream.id)
      s.dropStream.run(stream.id)
      return 0
    },
    takeStreams() {
      const were = streams
      streams = []
      return were
    },
    forget: () => known.clear(),
  }
}

const keyOf = (log: number, id: string) => `${log}/${id}`

const entryStatements = (db: DatabaseSync) => ({
  find: db.prepare(STREAM),
  begin: db.prepare('INSERT INTO streams(log, name) VALUES (?, ?) ON CONFLICT DO NOTHING'),
  append: db.prepare('INSERT INTO entries(rowid, value) VALUES ((? << 32) | ?, ?)'),
  dropEntries: db.prepare('DELETE FROM entries WHERE rowid > (?1 << 32) AND rowid < ((?1 + 1) << 32)'),
  dropStream: db.prepare('DELETE FROM streams WHERE id = ?'),
})
