import { type Catalog, checkSize, storeConflict } from '@svc/space'
import type { Json, StoreChange, StoreOp } from '@svc/core/contracts'
import { type Kept, keep } from './copy.ts'
import { type Room, thingName } from './room.ts'
import type { Table } from './table.ts'

/** The entries of one stream. */
export interface Stream {
  readonly values: Json[]
  bytes: number
}

/** Everything that is held. */
export interface Held {
  readonly tables: Map<string, Table>
  readonly logs: Map<string, Map<string, Stream>>
  readonly versions: Map<string, number>
}

/** What a batch did: its answer, and what watchers hear. */
export interface Done {
  readonly results: number[]
  readonly changes: StoreChange[]
}

const ENTRY = 32

/** Does the operations of checked batches, each of them wholly or not at all. */
export function createBatches(held: Held, catalog: Catalog, room: Room): { run(ops: readonly StoreOp[]): Done } {
  let undo: (() => void)[] = []
  let changes: StoreChange[] = []
  const touched = new Set<string>()

  const account = (space: string, id: string, bytes: number, count: number) => {
    room.change(space, id, bytes, count)
    touched.add(thingName(space, id))
    undo.push(() => room.change(space, id, -bytes, -count))
  }
  const tell = (table: Table, collection: string, key: string) => {
    if (!table.watched) return
    const record = table.get(key)?.record
    changes.push(record ? { collection, ...record } : { collection, key, version: 0 })
  }
  const replace = (collection: string, key: string, kept: Kept | undefined) => {
    const table = held.tables.get(collection)!
    const before = table.get(key)
    const version = kept ? (before?.record.version ?? 0) + 1 : 0
    if (!kept && !before) return 0
    const row = kept && { record: Object.freeze({ key, version, value: kept.value }), bytes: kept.bytes + key.length + ENTRY }
    if (row) table.set(row)
    else table.remove(key)
    undo.push(() => (before ? table.set(before) : table.remove(key)))
    account(table.space, key, (row?.bytes ?? 0) - (before?.bytes ?? 0), (row ? 1 : 0) - (before ? 1 : 0))
    tell(table, collection, key)
    return version
  }
  const append = (log: string, id: string, items: readonly Kept[]) => {
    const streams = held.logs.get(log)!
    const stream = streams.get(id) ?? { values: [], bytes: 0 }
    const [length, size] = [stream.values.length, stream.bytes]
    if (length === 0) streams.set(id, stream)
    for (const { value, bytes } of items) {
      stream.values.push(value)
      stream.bytes += bytes + ENTRY
    }
    undo.push(() => {
      stream.values.length = length
      stream.bytes = size
      if (length === 0) streams.delete(id)
    })
    account(catalog.log(log), id, stream.bytes - size, items.length)
    return stream.values.length
  }
  const drop = (log: string, id: string) => {
    const streams = held.logs.get(log)!
    const stream = streams.get(id)
    if (!stream) return 0
    streams.delete(id)
    undo.push(() => streams.set(id, stream))
    account(catalog.log(log), id, -stream.bytes, -stream.values.length)
    return 0
  }
  const evict = (space: string, id: string) => {
    for (const [name, table] of held.tables) if (table.space === space) replace(name, id, undefined)
    for (const log of catalog.space(space).logs ?? []) drop(log, id)
  }
  const one = (op: StoreOp, at: number, kept: readonly Kept[]): number => {
    if (op.op === 'put' || op.op === 'delete') {
      expect(at, op.ifVersion, held.tables.get(op.collection)!.get(op.key)?.record.version ?? 0)
      return replace(op.collection, op.key, kept[0])
    }
    if (op.op === 'append') {
      expect(at, op.ifLength, held.logs.get(op.log)!.get(op.id)?.values.length ?? 0)
      return kept.length === 0 ? (held.logs.get(op.log)!.get(op.id)?.values.length ?? 0) : append(op.log, op.id, kept)
    }
    if (op.op === 'drop') return drop(op.log, op.id)
    const before = held.versions.get(op.space)!
    held.versions.set(op.space, op.version)
    undo.push(() => held.versions.set(op.space, before))
    return 0
  }
  return {
    run(ops) {
      const kept = keepAll(ops)
      undo = []
      changes = []
      touched.clear()
      try {
        const results = ops.map((op, at) => one(op, at, kept[at]!))
        room.fit(touched, evict)
        return { results, changes }
      } catch (error) {
        for (const step of undo.reverse()) step()
        throw error
      }
    },
  }
}

function expect(op: number, expected: number | undefined, actual: number): void {
  if (expected !== undefined && expected !== actual) throw storeConflict(op, expected, actual)
}

const NONE: readonly Kept[] = Object.freeze([])

/** The values of all operations, copied before anything is done: a value that is no JSON spoils nothing. */
function keepAll(ops: readonly StoreOp[]): (readonly Kept[])[] {
  let sum = 0
  const sized = (value: Json) => {
    const kept = keep(value)
    checkSize(kept.bytes, (sum += kept.bytes))
    return kept
  }
  return ops.map(op => (op.op === 'put' ? [sized(op.value)] : op.op === 'append' ? op.values.map(sized) : NONE))
}
