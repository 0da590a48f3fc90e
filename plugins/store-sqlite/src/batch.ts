import type { DatabaseSync } from 'node:sqlite'
import type { Json, Space } from '@svc/core/contracts'
import { sortKey } from '@svc/space/sort-key'
import { noteMigrated, type StoredCatalog, type StoredCollection } from './catalog.ts'
import { Refusal } from './trouble.ts'
import { UNASKED, type WireOp } from './wire.ts'

/** What the writer knows while it does a batch. */
export interface BatchContext {
  catalog: StoredCatalog
  /** Spaces as this process declares them. */
  readonly spaces: ReadonlyMap<string, Space>
}

/** Does the operations of a batch inside a transaction; throws a Refusal with part of it done. */
export interface Batches {
  /** Versions and last seqs, then the number of each stream that was appended to. */
  run(ops: readonly WireOp[]): number[]
  /** Whether a watched collection was changed since this was last asked. */
  takeWatched(): boolean
}

/** Prepares the statements of one connection. */
export function createBatches(db: DatabaseSync, context: BatchContext): Batches {
  const s = statements(db)
  let watched = false
  let streams: number[] = []

  const collectionOf = (name: string) => context.catalog.collections.get(name) ?? unknown('collection', name)
  const logOf = (name: string) => context.catalog.logs.get(name) ?? unknown('log', name)
  /** A process that knows an older version of a space must not write its old shape into migrated data. */
  const checkVersion = (space: string) => {
    const stored = context.catalog.spaces.get(space) ?? 0
    const known = context.spaces.get(space)?.version ?? 0
    if (stored > known) throw new Refusal('STORE_NEWER', `the space "${space}"`, stored, known)
  }
  const tell = ({ id, watched: isWatched }: StoredCollection, key: string, gone: number) => {
    if (!isWatched) return
    watched = true
    s.feed.run(id, key, gone, Date.now())
  }
  const put = (at: number, name: string, key: string, text: string, expected: number) => {
    const collection = collectionOf(name)
    checkVersion(collection.space)
    const row = (collection.indexes.length ? s.findWhole : s.find).get(collection.id, key)
    const version = row ? Number(row.version) : 0
    expect(at, expected, version)
    if (row) s.update.run(version + 1, text, row.id!)
    const id = row ? Number(row.id) : Number(s.insert.run(collection.id, key, text).lastInsertRowid)
    if (collection.indexes.length) place(collection, id, key, row && String(row.value), text)
    tell(collection, key, 0)
    return version + 1
  }
  const place = (
    { indexes }: StoredCollection,
    id: number,
    key: string,
    before: string | undefined,
    after: string | undefined
  ) => {
    const old = before === undefined ? undefined : (JSON.parse(before) as Json)
    const fresh = after === undefined ? undefined : (JSON.parse(after) as Json)
    for (const { id: index, paths } of indexes) {
      const from = old === undefined ? undefined : sortKey(paths, old, key)
      const to = fresh === undefined ? undefined : sortKey(paths, fresh, key)
      if (from === to) continue
      if (from !== undefined) s.unplace.run(index, from)
      if (to !== undefined) s.place.run(index, to, id)
    }
  }
  const remove = (at: number, name: string, key: string, expected: number) => {
    const collection = collectionOf(name)
    checkVersion(collection.space)
    const row = (collection.indexes.length ? s.findWhole : s.find).get(collection.id, key)
    expect(at, expected, row ? Number(row.version) : 0)
    if (!row) return 0
    s.remove.run(row.id!)
    if (collection.indexes.length) place(collection, Number(row.id), key, String(row.value), undefined)
    tell(collection, key, 1)
    return 0
  }
  const append = (at: number, name: string, id: string, texts: readonly string[], expected: number) => {
    const log = logOf(name)
    checkVersion(log.space)
    const row = s.stream.get(log.id, id)
    const length = row ? Number(row.length) : 0
    expect(at, expected, length)
    if (texts.length === 0) return length
    const end = length + texts.length
    const stream = row ? Number(row.id) : Number(s.makeStream.run(log.id, id, end).lastInsertRowid)
    if (row) s.lengthen.run(end, stream)
    for (let i = 0; i < texts.length; i++) s.append.run(stream, length + i + 1, texts[i]!)
    streams.push(stream)
    return end
  }
  const drop = (name: string, id: string) => {
    const log = logOf(name)
    checkVersion(log.space)
    const row = s.stream.get(log.id, id)
    if (!row) return 0
    s.dropEntries.run(row.id!)
    s.dropStream.run(row.id!)
    return 0
  }
  const migrated = (space: string, version: number) => {
    noteMigrated(db, context.spaces.get(space) ?? unknown('space', space), version)
    return 0
  }
  const one = (op: WireOp, at: number): number => {
    if (op[0] === 'put') return put(at, op[1], op[2], op[3], op[4])
    if (op[0] === 'append') return append(at, op[1], op[2], op[3], op[4])
    if (op[0] === 'delete') return remove(at, op[1], op[2], op[3])
    return op[0] === 'drop' ? drop(op[1], op[2]) : migrated(op[1], op[2])
  }
  return {
    run(ops) {
      streams = []
      const results = ops.map(one)
      return [...results, ...streams]
    },
    takeWatched() {
      const was = watched
      watched = false
      return was
    },
  }
}

function unknown(kind: string, name: string): never {
  throw new Refusal('STORE_UNKNOWN', kind, name)
}

function expect(op: number, expected: number, actual: number): void {
  if (expected !== UNASKED && expected !== actual) throw new Refusal('STORE_CONFLICT', op, expected, actual)
}

const statements = (db: DatabaseSync) => ({
  find: db.prepare('SELECT id, version FROM records WHERE collection = ? AND key = ?'),
  findWhole: db.prepare('SELECT id, version, value FROM records WHERE collection = ? AND key = ?'),
  insert: db.prepare('INSERT INTO records(collection, key, version, value) VALUES (?, ?, 1, ?)'),
  update: db.prepare('UPDATE records SET version = ?, value = ? WHERE id = ?'),
  remove: db.prepare('DELETE FROM records WHERE id = ?'),
  place: db.prepare('INSERT INTO places VALUES (?, ?, ?)'),
  unplace: db.prepare('DELETE FROM places WHERE idx = ? AND position = ?'),
  stream: db.prepare('SELECT id, length FROM streams WHERE log = ? AND name = ?'),
  makeStream: db.prepare('INSERT INTO streams(log, name, length) VALUES (?, ?, ?)'),
  lengthen: db.prepare('UPDATE streams SET length = ? WHERE id = ?'),
  append: db.prepare('INSERT INTO entries(id, value) VALUES ((? << 32) | ?, ?)'),
  dropEntries: db.prepare('DELETE FROM entries WHERE id > (?1 << 32) AND id < ((?1 + 1) << 32)'),
  dropStream: db.prepare('DELETE FROM streams WHERE id = ?'),
  feed: db.prepare('INSERT OR REPLACE INTO feed(collection, key, gone, at) VALUES (?, ?, ?, ?)'),
})
