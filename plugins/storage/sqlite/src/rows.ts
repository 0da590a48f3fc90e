import type { Json } from '@svc/core/contracts'

// How the entries of a log lie in the file: those that were appended together are one row, for what a row costs is more than what is in it. One alone is its JSON;
// several are a list of them behind a blank, which no JSON of ours begins with.

/** Entries that are one row: how many, and its text. */
export type Row = readonly [count: number, text: string]

const SEVERAL = ' ['
/** Characters of a row of several: who wants one of them reads all. */
const LARGEST = 16_384

/** The rows of entries that are appended together. */
export function rowsOf(texts: readonly string[]): Row[] {
  const rows: Row[] = []
  for (let from = 0, to = 0; from < texts.length; from = to) {
    let chars = texts[to++]!.length
    while (to < texts.length && (chars += texts[to]!.length) <= LARGEST) to++
    rows.push(to === from + 1 ? [1, texts[from]!] : [to - from, `${SEVERAL}${texts.slice(from, to).join(',')}]`])
  }
  return rows
}

/** The entries of a row. `read`: what reads JSON. */
export function entriesIn(text: string, read: (text: string) => Json): readonly Json[] {
  const value = read(text)
  return text.startsWith(SEVERAL) ? (value as readonly Json[]) : [value]
}

/** The same in SQL: how many entries a row has. */
export const COUNT_IN_ROW = `CASE WHEN value GLOB '${SEVERAL.replace('[', '[[]')}*' THEN json_array_length(value) ELSE 1 END`

/** So much is known at the most: whoever writes somewhere does so again soon. */
const MOST = 5_000

/** What a connection knows of the file by name. Right until another process writes or something is undone: `clear` it then. */
export class RowCache<T> extends Map<string, T> {
  keep(name: string, value: T): T {
    if (this.size >= MOST) this.clear()
    this.set(name, value)
    return value
  }
}
