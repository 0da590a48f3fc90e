import type { Json } from '@svc/core/contracts'

// The format of log entries in the file. Entries that were appended together are one row, because a row costs more than its
// contents. A single entry is its JSON; several are a list after a blank, with which svc's JSON never begins.

/** Entries in one row: their number and its text. */
export type StoredRow = readonly [count: number, text: string]

const SEVERAL = ' ['
/** Maximum size of a row of several entries, in characters: reading one entry reads all. */
const LARGEST = 16_384

/** The rows of entries that are appended together. */
export function rowsOf(texts: readonly string[]): StoredRow[] {
  const rows: StoredRow[] = []
  for (let from = 0, to = 0; from < texts.length; from = to) {
    let chars = texts[to++]!.length
    while (to < texts.length && (chars += texts[to]!.length) <= LARGEST) to++
    rows.push(to === from + 1 ? [1, texts[from]!] : [to - from, `${SEVERAL}${texts.slice(from, to).join(',')}]`])
  }
  return rows
}

/** The entries of a row. `read`: parses JSON. */
export function entriesIn(text: string, read: (text: string) => Json): readonly Json[] {
  const value = read(text)
  return text.startsWith(SEVERAL) ? (value as readonly Json[]) : [value]
}

/** The same in SQL: the number of entries in a row. */
export const COUNT_IN_ROW = `CASE WHEN value GLOB '${SEVERAL.replace('[', '[[]')}*' THEN json_array_length(value) ELSE 1 END`

/** Maximum number of cached rows. */
const MOST = 5_000

/**
 * Rows of the file that a connection has read, by name. Call `clear` when another process has written or something was rolled
 * back. A full cache clears itself. It is no LRU cache: such a cache allocates its full size, and each `clear` would cost as much.
 */
export class RowCache<T> extends Map<string, T> {
  keep(name: string, value: T): T {
    if (this.size >= MOST) this.clear()
    this.set(name, value)
    return value
  }
}
