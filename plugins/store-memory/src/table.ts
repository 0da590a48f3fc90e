import { byBytes, type Declared, sortKey } from '@svc/space'
import type { IndexPaths, StoreRecord } from '@svc/core/contracts'
import { createSorted, type Sorted } from './sorted.ts'

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
  set(row: Row): void
  remove(key: string): void
  /** The order of an index; of the keys for no paths. */
  order(paths: IndexPaths): Sorted<string>
  /** Takes over a newer declaration: builds what orders are missing, forgets those no longer named. */
  declare(declared: Declared): void
}

interface Order {
  readonly paths: IndexPaths
  readonly sorted: Sorted<string>
}

const idOf = (paths: IndexPaths) => JSON.stringify(paths)

/** Makes the table of a collection. */
export function createTable(first: Declared): Table {
  const rows = new Map<string, Row>()
  let orders = new Map<string, Order>()
  let { watched, space } = first

  const place = ({ paths, sorted }: Order, { record }: Row) => {
    const position = sortKey(paths, record.value, record.key)
    sorted.add({ at: byBytes(position), position, item: record.key })
  }
  const unplace = ({ paths, sorted }: Order, { record }: Row) => sorted.remove(byBytes(sortKey(paths, record.value, record.key)))
  const build = (paths: IndexPaths): Order => {
    const order = { paths, sorted: createSorted<string>() }
    for (const row of rows.values()) place(order, row)
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
    set(row) {
      const { key } = row.record
      const before = rows.get(key)
      rows.set(key, row)
      for (const order of orders.values()) {
        if (before && order.paths.length === 0) continue
        if (before) unplace(order, before)
        place(order, row)
      }
    },
    remove(key) {
      const row = rows.get(key)
      if (!row) return
      rows.delete(key)
      for (const order of orders.values()) unplace(order, row)
    },
    order: paths => orders.get(idOf(paths))!.sorted,
    declare(declared) {
      ;({ watched, space } = declared)
      const wanted = [[], ...Object.values(declared.indexes)]
      orders = new Map(wanted.map(paths => [idOf(paths), orders.get(idOf(paths)) ?? build(paths)]))
    },
  }
  table.declare(first)
  return table
}
