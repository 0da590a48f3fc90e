import type { DatabaseSync } from 'node:sqlite'
import type { Collection, IndexPaths, Json, Space, TextFields } from '@svc/core/contracts'
import { sortKey } from '@svc/storage-kit/sort-key'
import { indexesToDrop, isDeclared, type StoredCatalog, type StoredTextIndex, textSpec } from '@svc/storage-kit/stored-catalog'
import { FileRefusal } from './file-errors.ts'
import { markTexts } from './file.ts'
import { createTextTable, createTextTables, dropTextTable } from './text-tables.ts'

/** The values of the column `watched`; files without lasting collections have only 0 and 1. */
const WATCHED = 1
const LASTING = 2

const all = (db: DatabaseSync, sql: string) => db.prepare(sql).all()

/** Reads the catalog of a file. */
export function loadCatalog(db: DatabaseSync): StoredCatalog {
  const indexes = Map.groupBy(all(db, 'SELECT id, collection, paths FROM indexes'), row => Number(row.collection))
  const texts = loadTexts(db)
  const collections = all(db, 'SELECT id, name, space, watched FROM collections').map(row => {
    const own = (indexes.get(Number(row.id)) ?? []).map(index => ({
      id: Number(index.id),
      paths: JSON.parse(String(index.paths)) as string[],
    }))
    const kept = { watched: (Number(row.watched) & WATCHED) !== 0, lasting: (Number(row.watched) & LASTING) !== 0 }
    const collection = { id: Number(row.id), space: String(row.space), ...kept, indexes: own, texts: texts(Number(row.id)) }
    return [String(row.name), collection] as const
  })
  return {
    spaces: new Map(all(db, 'SELECT name, version FROM spaces').map(row => [String(row.name), Number(row.version)])),
    collections: new Map(collections),
    logs: new Map(
      all(db, 'SELECT id, name, space FROM logs').map(row => [String(row.name), { id: Number(row.id), space: String(row.space) }])
    ),
  }
}

/** The full-text indexes by collection. Most files have none. */
function loadTexts(db: DatabaseSync): (collection: number) => readonly StoredTextIndex[] {
  if (!db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'texts'").get()) return () => []
  const rows = Map.groupBy(all(db, 'SELECT id, collection, fields FROM texts'), row => Number(row.collection))
  return collection =>
    (rows.get(collection) ?? []).map(({ id, fields }) => ({ id: Number(id), fields: JSON.parse(String(fields)) as TextFields }))
}

/**
 * Writes a space's declaration, builds its new indexes, and returns the version of its data (0 for a new space). Runs inside a
 * transaction.
 */
export function declareSpace(db: DatabaseSync, space: Space): number {
  const catalog = loadCatalog(db)
  const stored = catalog.spaces.get(space.name) ?? 0
  if (stored > space.version) throw new FileRefusal('STORE_NEWER', `the space "${space.name}"`, stored, space.version)
  if (isDeclared(catalog, space)) return stored
  if (stored === 0) db.prepare('INSERT INTO spaces VALUES (?, ?)').run(space.name, space.version)
  for (const [name, declared] of Object.entries(space.collections ?? {})) {
    checkOwner('collection', name, space.name, catalog.collections.get(name)?.space)
    declareCollection(db, space.name, name, declared)
  }
  for (const log of space.logs ?? []) {
    checkOwner('log', log, space.name, catalog.logs.get(log)?.space)
    db.prepare('INSERT INTO logs(name, space) VALUES (?, ?) ON CONFLICT DO NOTHING').run(log, space.name)
  }
  db.exec("UPDATE counters SET value = value + 1 WHERE name = 'catalog'")
  return stored
}

function checkOwner(kind: string, name: string, space: string, by: string | undefined): void {
  if (by !== undefined && by !== space)
    throw new FileRefusal('STORE_INVALID', `the ${kind} "${name}" of space "${space}" belongs to space "${by}"`)
}

function declareCollection(db: DatabaseSync, space: string, name: string, declared: Collection): void {
  const { watched, lasting, indexes = {}, text = {} } = declared
  db.prepare(
    'INSERT INTO collections(name, space, watched) VALUES (?, ?, ?) ON CONFLICT(name) DO UPDATE SET watched = excluded.watched'
  ).run(name, space, (watched ? WATCHED : 0) | (lasting ? LASTING : 0))
  const id = Number(db.prepare('SELECT id FROM collections WHERE name = ?').get(name)!.id)
  for (const paths of Object.values(indexes)) {
    const made = db
      .prepare('INSERT INTO indexes(collection, paths) VALUES (?, ?) ON CONFLICT DO NOTHING')
      .run(id, JSON.stringify(paths))
    if (made.changes === 1) build(db, id, Number(made.lastInsertRowid), paths)
  }
  for (const fields of Object.values(text)) declareText(db, id, fields)
}

function declareText(db: DatabaseSync, collection: number, fields: TextFields): void {
  markTexts(db)
  const made = db
    .prepare('INSERT INTO texts(collection, fields) VALUES (?, ?) ON CONFLICT DO NOTHING')
    .run(collection, textSpec(fields))
  if (made.changes === 0) return
  const text = { id: Number(made.lastInsertRowid), fields }
  createTextTable(db, text)
  const tables = createTextTables(db)
  for (const row of db.prepare('SELECT id, value FROM records WHERE collection = ?').iterate(collection))
    tables.put([text], Number(row.id), JSON.parse(String(row.value)) as Json, true)
}

function build(db: DatabaseSync, collection: number, index: number, paths: IndexPaths): void {
  const insert = db.prepare('INSERT INTO places VALUES (?, ?, ?)')
  for (const row of db.prepare('SELECT id, key, value FROM records WHERE collection = ?').iterate(collection)) {
    insert.run(index, sortKey(paths, JSON.parse(String(row.value)) as Json, String(row.key)), Number(row.id))
  }
}

/** Writes a space's new version and drops indexes that its declaration no longer names. Runs inside a transaction. */
export function noteMigrated(db: DatabaseSync, space: Space, version: number): void {
  db.prepare('UPDATE spaces SET version = ? WHERE name = ?').run(version, space.name)
  db.exec("UPDATE counters SET value = value + 1 WHERE name = 'catalog'")
  if (version !== space.version) return
  const { indexes, texts } = indexesToDrop(loadCatalog(db), space)
  for (const id of texts) dropTextTable(db, id)
  for (const id of indexes) dropIndex(db, id)
}

function dropIndex(db: DatabaseSync, id: number): void {
  db.prepare('DELETE FROM places WHERE idx = ?').run(id)
  db.prepare('DELETE FROM indexes WHERE id = ?').run(id)
}
