import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Json, TextFields } from '@svc/core/contracts'
import type { StoredTextIndex } from '@svc/storage-kit/stored-catalog'
import { type ParsedQuery, type Term, textEntry } from '@svc/storage-kit/text'

// Each full-text index is a table of FTS5 without contents: its rows have the ids of the records. The table gets words that are
// already analyzed, so its tokenizer `ascii` only splits them at spaces. No text of a person is ever a part of a statement: a query
// for FTS5 consists of quoted words, which contain letters, digits and marks only.

/** The table of the catalog; a file has it once it has a full-text index. */
export const TEXTS = `CREATE TABLE IF NOT EXISTS texts(id INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL, fields TEXT NOT NULL, UNIQUE(collection, fields)) STRICT;`

const columnsOf = ({ fields }: TextFields) => fields.map((_, at) => `f${at}`)

/** Creates the table of a full-text index. */
export function createTextTable(db: DatabaseSync, { id, fields }: StoredTextIndex): void {
  db.exec(
    `CREATE VIRTUAL TABLE text_${id} USING fts5(filter, ${columnsOf(fields).join(', ')}, content='', contentless_delete=1, tokenize='ascii', prefix='2 3')`
  )
}

export function dropTextTable(db: DatabaseSync, id: number): void {
  db.exec(`DROP TABLE text_${id}`)
  db.prepare('DELETE FROM texts WHERE id = ?').run(id)
}

/** Merges an index into one segment, without the words of deleted records. */
export const mergeText = (id: number): string => `INSERT INTO text_${id}(text_${id}) VALUES ('optimize')`

/** Writes records into full-text indexes inside a transaction. */
export interface TextTables {
  put(texts: readonly StoredTextIndex[], record: number, value: Json, isNew: boolean): void
  remove(texts: readonly StoredTextIndex[], record: number): void
}

/** Prepares the statements of one connection at their first use. */
export function createTextTables(db: DatabaseSync): TextTables {
  const prepared = new Map<number, { readonly insert: StatementSync; readonly remove: StatementSync }>()
  const statementsOf = ({ id, fields }: StoredTextIndex) => {
    let found = prepared.get(id)
    if (!found) {
      const columns = ['rowid', 'filter', ...columnsOf(fields)]
      const insert = db.prepare(`INSERT INTO text_${id}(${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`)
      prepared.set(id, (found = { insert, remove: db.prepare(`DELETE FROM text_${id} WHERE rowid = ?`) }))
    }
    return found
  }
  return {
    put(texts, record, value, isNew) {
      for (const text of texts) {
        const { insert, remove } = statementsOf(text)
        if (!isNew) remove.run(record)
        const entry = textEntry(text.fields, value)
        if (entry) insert.run(record, entry.filters.join(' '), ...entry.fields.map(words => words.join(' ')))
      }
    },
    remove(texts, record) {
      for (const text of texts) statementsOf(text).remove.run(record)
    },
  }
}

/**
 * The statement of a search: its parameters are the query, score and key of the last hit, and the limit. It reads the keys only of
 * matches whose score can be in the page, and the values only of the page.
 */
export const searchIn = (id: number, matches: number): string =>
  `WITH found AS MATERIALIZED (SELECT rowid AS id, -bm25(text_${id}, 0.0) AS score FROM text_${id} WHERE text_${id} MATCH ?1 ORDER BY rowid DESC LIMIT ${matches}),
  least AS MATERIALIZED (SELECT COALESCE((SELECT score FROM found WHERE score < ?2 ORDER BY score DESC LIMIT 1 OFFSET ?4 - 1), -1e999) AS score),
  page AS MATERIALIZED (SELECT found.id, found.score, r.key FROM least CROSS JOIN found CROSS JOIN records r ON r.id = found.id
    WHERE found.score >= least.score AND (found.score < ?2 OR (found.score = ?2 AND r.key > ?3)) ORDER BY found.score DESC, r.key LIMIT ?4)
  SELECT page.key, r.version, r.value, page.score FROM page CROSS JOIN records r ON r.id = page.id ORDER BY page.score DESC, page.key`

/** A parsed query in the language of FTS5; undefined if it finds nothing. */
export function matchExpression(fields: TextFields, { all, none }: ParsedQuery, filter: string | undefined): string | undefined {
  if (all.length === 0) return undefined
  const wanted = all.map(phrase).join(' AND ')
  const words = none.length === 0 ? `(${wanted})` : `((${wanted}) NOT (${none.map(phrase).join(' OR ')}))`
  return `${filter === undefined ? '' : `filter : "${filter}" AND `}{${columnsOf(fields).join(' ')}} : ${words}`
}

const phrase = ({ words, prefix }: Term) => `("${words.join(' ')}"${prefix ? ' *' : ''})`
