import type { DatabaseSync } from 'node:sqlite'
import type { Json, TextFields } from '@svc/core/contracts'
import type { StoredCatalog, StoredTextIndex } from './stored-catalog.ts'

// The format of a store file of `@svc/plugin-store-sqlite`, as far as another program needs it to read the contents. Only that plugin
// writes such files; its `file.ts` has the tables.

/** `PRAGMA application_id` of a store file: "svc1". */
export const STORE_FILE_ID = 0x73766331
/** The formats (`PRAGMA user_version`) of files that have the present tables. The plugin converts older ones when it opens them. */
export const STORE_FILE_FORMATS: readonly [oldest: number, newest: number] = [3, 4]

/** The bits of the column `watched`; files without lasting collections have only 0 and 1. */
export const [WATCHED, LASTING] = [1, 2]

/**
 * Entries that were appended together are one row, because a row costs more than its contents. A single entry is its JSON; several
 * are a list after a blank, with which svc's JSON never begins.
 */
export const SEVERAL = ' ['

/** The entries of a row. `read`: parses JSON. */
export function entriesIn(text: string, read: (text: string) => Json): readonly Json[] {
  const value = read(text)
  return text.startsWith(SEVERAL) ? (value as readonly Json[]) : [value]
}

const all = (db: DatabaseSync, sql: string) => db.prepare(sql).all()

/** Reads the catalog of a store file. */
export function loadFileCatalog(db: DatabaseSync): StoredCatalog {
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
