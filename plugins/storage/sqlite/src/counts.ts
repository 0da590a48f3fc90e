import type { DatabaseSync } from 'node:sqlite'
import type { Counted, CountWindow } from '@svc/core/contracts'
import { endOf, hit, type KeptWindow } from '@svc/storage-kit/count'
import { parsed } from './file-errors.ts'

/** The counted hits in a file, as they are changed inside a transaction. */
export interface Counts {
  count(key: string, windows: readonly CountWindow[]): Counted
  /** Writes what was counted since the transaction began; answers how many rows that were. */
  flush(): number
  /** The transaction was taken back: forgets what was counted in it. */
  drop(): void
}

/** So many keys are kept; beyond that those whose windows began first are forgotten. */
export const MOST_COUNTS = 1_000_000
/** So many keys whose windows are over are looked for with each key that begins anew. */
const SWEPT = 2

interface Row {
  readonly id?: number
  /** The end that the file has. */
  readonly ends?: number
  kept: readonly KeptWindow[]
  changed: boolean
}

/**
 * Prepares the statements of one connection. Many hits of one transaction mostly have few keys: each row is read once and written once. A row gets a new, higher
 * id when its longest window begins anew, so the lowest ids are those that began first.
 */
export function createCounts(db: DatabaseSync, most: number): Counts {
  const s = statements(db)
  const rows = new Map<string, Row>()

  const load = (key: string): Row => {
    const found = s.find.get(key)
    if (!found) return { kept: [], changed: false }
    const kept = parsed(found.windows) as unknown as KeptWindow[]
    return { id: Number(found.id), ends: Number(found.ends), kept, changed: false }
  }
  const rowOf = (key: string) => {
    let row = rows.get(key)
    if (!row) rows.set(key, (row = load(key)))
    return row
  }
  /** How many rows more there are now. */
  const write = (key: string, { id, ends, kept }: Row): number => {
    const end = endOf(kept)
    const text = JSON.stringify(kept)
    if (id !== undefined && end === ends) {
      s.update.run(text, id)
      return 0
    }
    if (id !== undefined) s.remove.run(id)
    s.insert.run(key, end, text)
    return id === undefined ? 1 : 0
  }
  const makeRoom = (more: number) => {
    const swept = Number(s.sweep.run(Date.now(), more * SWEPT).changes)
    const total = Number(s.total.get(more - swept)!.value)
    if (total > most) s.total.get(-Number(s.forget.run(total - most).changes))
  }
  return {
    count(key, windows) {
      const row = rowOf(key)
      const { counted, kept } = hit(row.kept, windows, Date.now())
      row.changed ||= kept !== row.kept
      row.kept = kept
      return counted
    },
    flush() {
      const changed = [...rows].filter(([, row]) => row.changed)
      const more = changed.reduce((sum, [key, row]) => sum + write(key, row), 0)
      rows.clear()
      if (more > 0) makeRoom(more)
      return changed.length
    },
    drop: () => rows.clear(),
  }
}

const statements = (db: DatabaseSync) => ({
  find: db.prepare('SELECT id, ends, windows FROM counts WHERE key = ?'),
  insert: db.prepare('INSERT INTO counts(key, ends, windows) VALUES (?, ?, ?)'),
  update: db.prepare('UPDATE counts SET windows = ? WHERE id = ?'),
  remove: db.prepare('DELETE FROM counts WHERE id = ?'),
  sweep: db.prepare('DELETE FROM counts WHERE id IN (SELECT id FROM counts WHERE ends <= ? ORDER BY ends LIMIT ?)'),
  forget: db.prepare('DELETE FROM counts WHERE id IN (SELECT id FROM counts ORDER BY id LIMIT ?)'),
  total: db.prepare("UPDATE counters SET value = value + ? WHERE name = 'counts' RETURNING value"),
})
