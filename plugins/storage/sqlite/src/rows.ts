import type { Json, LogEntry } from '@svc/core/contracts'
import { entriesIn, SEVERAL } from '@svc/storage-kit/store-file'

/** Entries in one row: their number and its text. */
export type StoredRow = readonly [count: number, text: string]

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

/** The number of entries in a row, in SQL. */
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

/**
 * A cache of the ends of streams that this process read recently and wrote since. Entries never change and numbers of streams
 * are never reused, so an entry of the cache is valid while the file has that stream.
 */
export interface Tails {
  /**
   * Adds acknowledged entries: the rows up to the seq `end`. Only for streams that were read: most streams, such as logs, are
   * never read.
   */
  wrote(stream: number, end: number, rows: readonly StoredRow[]): void
  /** Adds entries that were read up to the end of their stream; freezes them. */
  saw(stream: number, entries: readonly LogEntry[], chars: number): void
  /** The entries `from` to `to`, frozen; undefined unless all are cached. */
  read(stream: number, from: number, to: number): LogEntry[] | undefined
  clear(): void
}

interface Tail {
  readonly first: number
  /** Text until it is first read, then parsed. */
  readonly entries: (LogEntry | string)[]
  chars: number
}

/** Limits of the cache in characters of JSON: in total, and for one stream. */
const ALL = 16 * 1024 * 1024
const ONE = 1024 * 1024

/** Creates an empty cache. */
export function createTails(): Tails {
  const tails = new Map<number, Tail>()
  let chars = 0

  const forget = (stream: number) => {
    chars -= tails.get(stream)?.chars ?? 0
    tails.delete(stream)
  }
  // A sixteenth at once: a Map that has lost its first keys searches for the next one from the start.
  const makeRoom = () => {
    for (const oldest of tails.keys()) {
      if (chars <= (ALL / 16) * 15) return
      forget(oldest)
    }
  }
  const keep = (stream: number, tail: Tail) => {
    forget(stream)
    if (tail.chars > ONE) return
    tails.set(stream, tail)
    chars += tail.chars
    if (chars > ALL) makeRoom()
  }
  return {
    wrote(stream, end, rows) {
      const tail = tails.get(stream)
      if (!tail) return
      forget(stream)
      const count = rows.reduce((sum, [of]) => sum + of, 0)
      if (tail.first + tail.entries.length !== end - count + 1) return
      for (const row of rows) add(tail, row)
      keep(stream, tail)
    },
    saw(stream, entries, size) {
      if (size > ONE || entries.length === 0) return
      entries.forEach(deepFreeze)
      keep(stream, { first: entries[0]!.seq, entries: [...entries], chars: size })
    },
    read(stream, from, to) {
      const tail = tails.get(stream)
      if (!tail || from < tail.first || to >= tail.first + tail.entries.length) return undefined
      const found: LogEntry[] = []
      for (let seq = from; seq <= to; seq++) found.push(entryAt(tail, seq))
      return found
    },
    clear() {
      tails.clear()
      chars = 0
    },
  }
}

function add(tail: Tail, [count, text]: StoredRow): void {
  tail.chars += text.length
  if (count === 1) tail.entries.push(text)
  else
    for (const value of entriesIn(text, JSON.parse))
      tail.entries.push(deepFreeze({ seq: tail.first + tail.entries.length, value }))
}

function entryAt(tail: Tail, seq: number): LogEntry {
  const entry = tail.entries[seq - tail.first]!
  if (typeof entry !== 'string') return entry
  const parsed = deepFreeze({ seq, value: JSON.parse(entry) as Json })
  tail.entries[seq - tail.first] = parsed
  return parsed
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}
