import type { DatabaseSync } from 'node:sqlite'
import type { Counted, CountWindow } from '@svc/core/contracts'
import { endOf, hit, type StoredWindow } from '@svc/storage-kit/count'
import { NOW } from './file.ts'
import { parsed } from './file-errors.ts'

/** The counted hits in a file, changed inside a transaction. */
export interface FileCounts {
  count(key: string, windows: readonly CountWindow[]): Counted
  /** Writes the counts of the transaction; returns the number of rows. */
  flush(): number
  /** Forgets the counts of a rolled back transaction. */
  drop(): void
}

/** Maximum number of keys; beyond it, keys whose windows began first are deleted. */
export const MOST_COUNTS = 1_000_000
/** Expired keys that are deleted with each new key. */
const SWEPT = 2

interface Row {
  readonly id?: number
  /** The end in the file. */
  readonly ends?: number
  kept: readonly StoredWindow[]
  changed: boolean
}

/**
 * Prepares the statements of one connection. Each row is read once and written once in a transaction. A row gets a new, higher
 * id when its longest window begins, so the lowest ids began first.
 */
export function createCounts(db: DatabaseSync, most: number): FileCounts {
  const s = statements(db)
  const rows = new Map<string, Row>()
  const time = createClock(() => Number(s.now.get()!.now))

  const load = (key: string): Row => {
    const found = s.find.get(key)
    if (!found) return { kept: [], changed: false }
    const kept = parsed(found.windows) as unknown as StoredWindow[]
    return { id: Number(found.id), ends: Number(found.ends), kept, changed: false }
  }
  const rowOf = (key: string) => {
    let row = rows.get(key)
    if (!row) rows.set(key, (row = load(key)))
    return row
  }
  /** Growth of the number of rows. */
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
    const swept = Number(s.sweep.run(time(), more * SWEPT).changes)
    const total = Number(s.total.get(more - swept)!.value)
    if (total > most) s.total.get(-Number(s.forget.run(total - most).changes))
  }
  return {
    count(key, windows) {
      const row = rowOf(key)
      const { counted, kept } = hit(row.kept, windows, time())
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

/** How often the clock of the machine is read: that costs as much as a hit. */
const CLOCK_MS = 1000

/** The clock of the machine, whatever this process takes for the time, continued by the monotonic clock. */
function createClock(read: () => number): () => number {
  let [readAt, offset] = [Number.NEGATIVE_INFINITY, 0]
  return () => {
    const steady = performance.now()
    if (steady - readAt > CLOCK_MS) [readAt, offset] = [steady, read() - steady]
    return Math.round(steady + offset)
  }
}

const statements = (db: DatabaseSync) => ({
  now: db.prepare(`SELECT ${NOW} AS now`),
  find: db.prepare('SELECT id, ends, windows FROM counts WHERE key = ?'),
  insert: db.prepare('INSERT INTO counts(key, ends, windows) VALUES (?, ?, ?)'),
  update: db.prepare('UPDATE counts SET windows = ? WHERE id = ?'),
  remove: db.prepare('DELETE FROM counts WHERE id = ?'),
  sweep: db.prepare('DELETE FROM counts WHERE id IN (SELECT id FROM counts WHERE ends <= ? ORDER BY ends LIMIT ?)'),
  forget: db.prepare('DELETE FROM counts WHERE id IN (SELECT id FROM counts ORDER BY id LIMIT ?)'),
  total: db.prepare("UPDATE counters SET value = value + ? WHERE name = 'counts' RETURNING value"),
})
