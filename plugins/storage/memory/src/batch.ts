import type { StoreChange, StoreOp } from '@svc/core/contracts'
import { type Catalog, checkSize, storeConflict } from '@svc/storage-kit'
import { keep, keepText, type Kept, type KeptText } from './copy.ts'
import { type Capacity, thingName } from './capacity.ts'
import type { Row, Table } from './table.ts'

/** The entries of one stream. */
interface Stream {
  /** As JSON text. */
  readonly values: string[]
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
  readonly changes: readonly StoreChange[]
}

/** What an operation works with. */
interface Work {
  readonly held: Held
  readonly catalog: Catalog
  readonly journal: Journal
}

/** About what a record or an entry costs besides its value. */
const ENTRY = 32

/** Does the operations of checked batches, each batch wholly or not at all. */
export function createBatches(held: Held, catalog: Catalog, capacity: Capacity): { run(ops: readonly StoreOp[]): Done } {
  return {
    run(ops) {
      const kept = keepAll(ops)
      const work = { held, catalog, journal: createJournal(capacity) }
      try {
        const results = ops.map((op, at) => one(work, op, at, kept[at]!))
        capacity.fit(
          () => work.journal.touched(),
          (space, id) => evict(work, space, id)
        )
        return { results, changes: work.journal.changes }
      } catch (error) {
        work.journal.rollBack()
        throw error
      }
    },
  }
}

function one(work: Work, op: StoreOp, at: number, { value, entries }: KeptOp): number {
  const { held } = work
  if (op.op === 'put' || op.op === 'delete') {
    const table = held.tables.get(op.collection)!
    const before = table.get(op.key)
    expect(at, op.ifVersion, before?.record.version ?? 0)
    return replace(work, table, op.collection, op.key, before, value)
  }
  if (op.op === 'append') {
    const length = held.logs.get(op.log)!.get(op.id)?.values.length ?? 0
    expect(at, op.ifLength, length)
    return entries.length === 0 ? length : append(work, op.log, op.id, entries)
  }
  return op.op === 'drop' ? drop(work, op.log, op.id) : migrated(work, op.space, op.version)
}

function replace(
  { journal }: Work,
  table: Table,
  collection: string,
  key: string,
  before: Row | undefined,
  kept: Kept | undefined
): number {
  if (!kept && !before) return 0
  const version = kept ? (before?.record.version ?? 0) + 1 : 0
  const row = kept && { record: Object.freeze({ key, version, value: kept.value }), bytes: kept.bytes + key.length + ENTRY }
  if (row) table.set(row, before)
  else table.remove(key)
  journal.undone(() => (before ? table.set(before, row) : table.remove(key)))
  journal.account(table.space, key, (row?.bytes ?? 0) - (before?.bytes ?? 0), (row ? 1 : 0) - (before ? 1 : 0))
  journal.tell(table, collection, key)
  return version
}

function append({ held, catalog, journal }: Work, log: string, id: string, items: readonly KeptText[]): number {
  const streams = held.logs.get(log)!
  const stream = streams.get(id) ?? { values: [], bytes: 0 }
  const [length, size] = [stream.values.length, stream.bytes]
  if (length === 0) streams.set(id, stream)
  for (const { text, bytes } of items) {
    stream.values.push(text)
    stream.bytes += bytes + ENTRY
  }
  journal.undone(() => {
    stream.values.length = length
    stream.bytes = size
    if (length === 0) streams.delete(id)
  })
  journal.account(catalog.log(log), id, stream.bytes - size, items.length)
  return stream.values.length
}

function drop({ held, catalog, journal }: Work, log: string, id: string): number {
  const streams = held.logs.get(log)!
  const stream = streams.get(id)
  if (!stream) return 0
  streams.delete(id)
  journal.undone(() => streams.set(id, stream))
  journal.account(catalog.log(log), id, -stream.bytes, -stream.values.length)
  return 0
}

function migrated({ held, journal }: Work, space: string, version: number): number {
  const before = held.versions.get(space)!
  held.versions.set(space, version)
  journal.undone(() => held.versions.set(space, before))
  return 0
}

/** Gives up a thing: what shares its key within its space. */
function evict(work: Work, space: string, id: string): void {
  for (const [name, table] of work.held.tables)
    if (table.space === space) replace(work, table, name, id, table.get(id), undefined)
  for (const log of work.catalog.space(space).logs ?? []) drop(work, log, id)
}

function expect(op: number, expected: number | undefined, actual: number): void {
  if (expected !== undefined && expected !== actual) throw storeConflict(op, expected, actual)
}

/** What an operation keeps: the value of a put, the entries of an append. */
interface KeptOp {
  readonly value?: Kept
  readonly entries: readonly KeptText[]
}
const NOTHING: KeptOp = Object.freeze({ entries: [] })

/** The values of all operations, copied before anything is done: a value that is no JSON spoils nothing. */
function keepAll(ops: readonly StoreOp[]): KeptOp[] {
  let sum = 0
  const sized = <T extends { bytes: number }>(kept: T): T => {
    checkSize(kept.bytes, (sum += kept.bytes))
    return kept
  }
  return ops.map(op => {
    if (op.op === 'put') return { value: sized(keep(op.value)), entries: [] }
    return op.op === 'append' ? { entries: op.values.map(value => sized(keepText(value))) } : NOTHING
  })
}

/** What the batch at work has done so far: how to take it back, what it touched, what watchers will hear. */
interface Journal {
  readonly changes: StoreChange[]
  /** The things it touched, by `thingName`. */
  touched(): ReadonlySet<string>
  /** Notes how to take a step back. */
  undone(by: () => void): void
  /** Counts a thing's change. */
  account(space: string, id: string, bytes: number, count: number): void
  /** Notes what watchers of a table will hear of a key. */
  tell(table: Table, collection: string, key: string): void
  /** Takes everything back, last first. */
  rollBack(): void
}

/** Begins the journal of a batch. */
function createJournal(capacity: Capacity): Journal {
  const undo: (() => void)[] = []
  const changes: StoreChange[] = []
  const things: [space: string, id: string][] = []
  return {
    changes,
    touched: () => new Set(things.map(([space, id]) => thingName(space, id))),
    undone: by => void undo.push(by),
    account(space, id, bytes, count) {
      capacity.change(space, id, bytes, count)
      things.push([space, id])
      undo.push(() => capacity.change(space, id, -bytes, -count))
    },
    tell(table, collection, key) {
      if (!table.watched) return
      const record = table.get(key)?.record
      changes.push(record ? { collection, ...record } : { collection, key, version: 0 })
    },
    rollBack() {
      for (const step of undo.reverse()) step()
    },
  }
}
