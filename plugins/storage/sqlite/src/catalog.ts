import type { DatabaseSync } from 'node:sqlite'
import type { Collection, IndexPaths, Json, Space, TextFields } from '@svc/core/contracts'
import { sortKey } from '@svc/storage-kit/sort-key'
import { LASTING, loadFileCatalog, WATCHED } from '@svc/storage-kit/store-file'
import { indexesToDrop, isDeclared, textSpec } from '@svc/storage-kit/stored-catalog'
import { FileRefusal } from './file-errors.ts'
import { markTexts } from './file.ts'
import { createTextTable, createTextTables, dropTextTable } from './text-tables.ts'

/**
 * Writes a space's declaration, builds its new indexes, and returns the version of its data (0 for a new space). Runs inside a
 * transaction.
 */
export function declareSpace(db: DatabaseSync, space: Space): number {
  const catalog = loadFileCatalog(db)
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
  const { indexes, texts } = indexesToDrop(loadFileCatalog(db), space)
  for (const id of texts) dropTextTable(db, id)
  for (const id of indexes) dropIndex(db, id)
}

function dropIndex(db: DatabaseSync, id: number): void {
  db.prepare('DELETE FROM places WHERE idx = ?').run(id)
  db.prepare('DELETE FROM indexes WHERE id = ?').run(id)
}
