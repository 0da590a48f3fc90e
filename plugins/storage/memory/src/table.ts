import type { IndexPaths, StoreRecord } from '@svc/core/contracts'
import { byBytes, type Declared, sortKey } from '@svc/storage-kit'
import { createMemoryText, type MemoryText } from './text-search.ts'

/** A record and its approximate size in bytes. */
export interface Row {
  readonly record: StoreRecord
  readonly bytes: number
}

/** The records of one collection, by key and in each declared order. */
export interface Table {
  readonly watched: boolean
  readonly space: string
  get(key: string): Row | undefined
  /** Adds a row, or replaces `before`. */
  set(row: Row, before: Row | undefined): void
  remove(key: string): void
  /** The order of an index, or of the keys if `paths` is empty. Created at its first use. */
  order(paths: IndexPaths): Sorted<string>
  /** The full-text index of this name. */
  text(name: string): MemoryText
  /** Applies a newer declaration and deletes orders that it does not name. */
  declare(declared: Declared): void
}

interface Order {
  readonly paths: IndexPaths
  readonly sorted: Sorted<string>
}

function placeOf(paths: IndexPaths, { record }: Row): SortedItem<string> {
  const position = sortKey(paths, record.value, record.key)
  return { at: byBytes(position), position, item: record.key }
}

const idOf = (paths: IndexPaths) => JSON.stringify(paths)

/** Creates the table of a collection. */
export function createTable(first: Declared): Table {
  const rows = new Map<string, Row>()
  const orders = new Map<string, Order>()
  const texts = new Map<string, MemoryText>()
  let { watched, space } = first

  const build = (paths: IndexPaths): Order => {
    const order = { paths, sorted: createSorted([...rows.values()].map(row => placeOf(paths, row))) }
    orders.set(idOf(paths), order)
    return order
  }
  const table: Table = {
    get watched() {
      return watched
    },
    get space() {
      return space
    },
    get: key => rows.get(key),
    set(row, before) {
      rows.set(row.record.key, row)
      for (const text of texts.values()) text.put(row.record.key, row.record.value)
      for (const order of orders.values()) {
        if (before && order.paths.length === 0) continue
        if (before) order.sorted.remove(placeOf(order.paths, before).at)
        order.sorted.add(placeOf(order.paths, row))
      }
    },
    remove(key) {
      const row = rows.get(key)
      if (!row) return
      rows.delete(key)
      for (const { paths, sorted } of orders.values()) sorted.remove(placeOf(paths, row).at)
      for (const text of texts.values()) text.remove(key)
    },
    order: paths => (orders.get(idOf(paths)) ?? build(paths)).sorted,
    text: name => texts.get(name)!,
    declare(declared) {
      ;({ watched, space } = declared)
      const named = new Set([[], ...Object.values(declared.indexes)].map(idOf))
      for (const id of orders.keys()) if (!named.has(id)) orders.delete(id)
      declareTexts(texts, declared, rows)
    },
  }
  table.declare(first)
  return table
}

/** Creates the full-text indexes that are new or have other fields, and deletes those that are not declared any more. */
function declareTexts(texts: Map<string, MemoryText>, { text }: Declared, rows: ReadonlyMap<string, Row>): void {
  for (const name of texts.keys()) if (!Object.hasOwn(text, name)) texts.delete(name)
  for (const [name, fields] of Object.entries(text)) {
    if (JSON.stringify(texts.get(name)?.fields) === JSON.stringify(fields)) continue
    const made = createMemoryText(fields)
    for (const { record } of rows.values()) made.put(record.key, record.value)
    texts.set(name, made)
  }
}

/** A position in an order: `at` sorts by JavaScript's `<`, `position` is its original sort key. */
interface SortedItem<T> {
  readonly at: string
  readonly position: string
  readonly item: T
}

/** The positions from `low` (behind it, with `behind`) to before `high`. */
interface Bounds {
  readonly low: string
  readonly behind: boolean
  readonly high: string | undefined
}

/** Items in the order of their `at`. Each change costs a search and a move within a short run. */
interface Sorted<T> {
  add(place: SortedItem<T>): void
  remove(at: string): void
  /** At most `limit` positions within the bounds, from either end. */
  slice(bounds: Bounds, reverse: boolean, limit: number): SortedItem<T>[]
}

const RUN = 512

/** Creates a sorted list of positions in any order. */
function createSorted<T>(places: SortedItem<T>[]): Sorted<T> {
  places.sort((a, b) => (a.at < b.at ? -1 : 1))
  const runs: SortedItem<T>[][] = [places.slice(0, RUN)]
  for (let at = RUN; at < places.length; at += RUN) runs.push(places.slice(at, at + RUN))
  const runOf = (at: string) => search(runs.length - 1, i => runs[i]!.at(-1)!.at >= at)
  const within = (run: SortedItem<T>[], at: string) => search(run.length, i => run[i]!.at >= at)

  return {
    add(place) {
      const r = runOf(place.at)
      const run = runs[r]!
      run.splice(within(run, place.at), 0, place)
      if (run.length > 2 * RUN) runs.splice(r + 1, 0, run.splice(RUN))
    },
    remove(at) {
      const r = runOf(at)
      const run = runs[r]!
      const i = within(run, at)
      if (run[i]?.at !== at) return
      run.splice(i, 1)
      if (run.length === 0 && runs.length > 1) runs.splice(r, 1)
    },
    slice(bounds, reverse, limit) {
      return reverse ? backward(runs, bounds, limit) : forward(runs, runOf(bounds.low), bounds, limit)
    },
  }
}

/** The first number in 0..end for which `ok` is true, or `end`. */
function search(end: number, ok: (i: number) => boolean): number {
  let [low, high] = [0, end]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (ok(middle)) high = middle
    else low = middle + 1
  }
  return low
}

function forward<T>(runs: SortedItem<T>[][], first: number, { low, behind, high }: Bounds, limit: number): SortedItem<T>[] {
  const out: SortedItem<T>[] = []
  const isIn = (at: string) => (behind ? at > low : at >= low)
  for (let r = first; r < runs.length; r++) {
    const run = runs[r]!
    for (let i = r === first ? search(run.length, at => isIn(run[at]!.at)) : 0; i < run.length; i++) {
      const place = run[i]!
      if (out.length === limit || (high !== undefined && place.at >= high)) return out
      out.push(place)
    }
  }
  return out
}

function backward<T>(runs: SortedItem<T>[][], { low, high }: Bounds, limit: number): SortedItem<T>[] {
  const out: SortedItem<T>[] = []
  const last = high === undefined ? runs.length - 1 : search(runs.length - 1, i => runs[i]!.at(-1)!.at >= high)
  for (let r = last; r >= 0; r--) {
    const run = runs[r]!
    const end = r === last && high !== undefined ? search(run.length, i => run[i]!.at >= high) : run.length
    for (let i = end - 1; i >= 0; i--) {
      const place = run[i]!
      if (out.length === limit || place.at < low) return out
      out.push(place)
    }
  }
  return out
}
