import { byBytes, type Declared, sortKey } from '@svc/storage-kit'
import type { IndexPaths, StoreRecord } from '@svc/core/contracts'
import { createSorted, type Place, type Sorted } from './sorted.ts'

/** A record and about how many bytes it takes. */
export interface Row {
  readonly record: StoreRecord
  readonly bytes: number
}

/** The records of one collection, by key and in each order that its space declares. */
export interface Table {
  readonly watched: boolean
  readonly space: string
  get(key: string): Row | undefined
  /** Puts a row in the place of the one that is there, if any. */
  set(row: Row, before: Row | undefined): void
  remove(key: string): void
  /** The order of an index; of the keys for no paths. Made when it is first asked for, kept from then on. */
  order(paths: IndexPaths): Sorted<string>
  /** Takes over a newer declaration: forgets the orders that it does not name. */
  declare(declared: Declared): void
}

interface Order {
  readonly paths: IndexPaths
  readonly sorted: Sorted<string>
}

function placeOf(paths: IndexPaths, { record }: Row): Place<string> {
  const position = sortKey(paths, record.value, record.key)
  return { at: byBytes(position), position, item: record.key }
}

const idOf = (paths: IndexPaths) => JSON.stringify(paths)

/** Makes the table of a collection. */
export function createTable(first: Declared): Table {
  const rows = new Map<string, Row>()
  const orders = new Map<string, Order>()
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
    },
    order: paths => (orders.get(idOf(paths)) ?? build(paths)).sorted,
    declare(declared) {
      ;({ watched, space } = declared)
      const named = new Set([[], ...Object.values(declared.indexes)].map(idOf))
      for (const id of orders.keys()) if (!named.has(id)) orders.delete(id)
    },
  }
  table.declare(first)
  return table
}
