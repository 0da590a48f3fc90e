import type { StoreChange, StoreOp, Json } from '@svc/core/contracts'
import { type Catalog, checkSize, storeConflict, storeInvalid } from '@svc/storage-kit'
import { type Capacity, itemName } from './capacity.ts'
import type { Row, Table } from './table.ts'

/** The entries of one stream. */
interface Stream {
  /** As JSON text. */
  readonly values: string[]
  bytes: number
}

/** Everything in the store. */
export interface StoreContents {
  readonly tables: Map<string, Table>
  readonly logs: Map<string, Map<string, Stream>>
  readonly versions: Map<string, number>
}

/** The result of a batch: its answer, and the changes for watchers. */
export interface Done {
  readonly results: number[]
  readonly changes: readonly StoreChange[]
}

/** The context of an operation. */
interface Work {
  readonly held: StoreContents
  readonly catalog: Catalog
  readonly journal: Journal
}

/** Approximate overhead of a record or an entry in bytes. */
const ENTRY = 32

/** Performs the operations of checked batches, each batch completely or not at all. */
export function createBatches(held: StoreContents, catalog: Catalog, capacity: Capacity): { run(ops: readonly StoreOp[]): Done } {
  return {
    run(ops) {
      const kept = keepAll(ops)
      const work = { held, catalog, journal: createJournal(capacity) }
      try {
        const results = ops.map((op, at) => item(work, op, at, kept[at]!))
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

function item(work: Work, op: StoreOp, at: number, { value, entries }: StoredOp): number {
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
  kept: StoredValue | undefined
): number {
  if (!kept && !before) return 0
  const version = kept ? (before?.record.version ?? 0) + 1 : 0
  const row = kept && { record: Object.freeze({ key, version, value: kept.value }), bytes: kept.bytes + key.length + ENTRY }
  if (row) table.set(row, before)
  else table.remove(key)
  journal.undone(() => (before ? table.set(before, row) : table.remove(key)))
  journal.account(table.space, key, (row?.bytes ?? 0) - (before?.bytes ?? 0), (row ? 1 : 0) - (before ? 1 : 0))
  journal.recordChange(table, collection, key)
  return version
}

function append({ held, catalog, journal }: Work, log: string, id: string, items: readonly StoredText[]): number {
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

/** Evicts an item: everything with its key in its space. */
function evict(work: Work, space: string, id: string): void {
  const { collections = {}, logs = [] } = work.catalog.space(space)
  for (const name of Object.keys(collections)) {
    const table = work.held.tables.get(name)!
    replace(work, table, name, id, table.get(id), undefined)
  }
  for (const log of logs) drop(work, log, id)
}

function expect(op: number, expected: number | undefined, actual: number): void {
  if (expected !== undefined && expected !== actual) throw storeConflict(op, expected, actual)
}

/** The values of an operation: of a put, or the entries of an append. */
interface StoredOp {
  readonly value?: StoredValue
  readonly entries: readonly StoredText[]
}
const NOTHING: StoredOp = Object.freeze({ entries: [] })

/** Copies the values of all operations first: a value that is not JSON then changes nothing. */
function keepAll(ops: readonly StoreOp[]): StoredOp[] {
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

/** The steps of the current batch: how to undo them, the touched items, the changes for watchers. */
interface Journal {
  readonly changes: StoreChange[]
  /** The touched items, by `itemName`. */
  touched(): ReadonlySet<string>
  /** Records how to undo a step. */
  undone(by: () => void): void
  /** Counts the change of an item. */
  account(space: string, id: string, bytes: number, count: number): void
  /** Records a change for the watchers of a table. */
  recordChange(table: Table, collection: string, key: string): void
  /** Undoes everything, last step first. */
  rollBack(): void
}

/** Begins the journal of a batch. */
function createJournal(capacity: Capacity): Journal {
  const undo: (() => void)[] = []
  const changes: StoreChange[] = []
  const items: [space: string, id: string][] = []
  return {
    changes,
    touched: () => new Set(items.map(([space, id]) => itemName(space, id))),
    undone: by => void undo.push(by),
    account(space, id, bytes, count) {
      capacity.change(space, id, bytes, count)
      items.push([space, id])
      undo.push(() => capacity.change(space, id, -bytes, -count))
    },
    recordChange(table, collection, key) {
      if (!table.watched) return
      const record = table.get(key)?.record
      changes.push(record ? { collection, ...record } : { collection, key, version: 0 })
    },
    rollBack() {
      for (const step of undo.reverse()) step()
    },
  }
}

/** A frozen copy of a value, and its approximate size in bytes. */
interface StoredValue {
  readonly value: Json
  readonly bytes: number
}

/** An entry of a log as text: it is rarely read, and the garbage collector has only one string to follow. */
interface StoredText {
  readonly text: string
  readonly bytes: number
}

function keepText(value: unknown): StoredText {
  try {
    const text = JSON.stringify(value) as string | undefined
    if (text === undefined) throw notJson(value)
    return { text, bytes: text.length }
  } catch (error) {
    if (error instanceof RangeError) throw tooDeep()
    // contains a bigint or a cycle
    throw error instanceof TypeError ? notJson(value) : error
  }
}

const notJson = (value: unknown) => storeInvalid(`a value must be JSON, was of type ${typeof value}`)
const tooDeep = () => storeInvalid('the value is nested too deeply')

const NODE = 16

/**
 * Copies a value as JSON would (drops absent properties, NaN becomes null) and freezes it, so that reads can return it as it
 * is.
 */
function keep(value: unknown): StoredValue {
  const tally = { bytes: 0 }
  try {
    return { value: copy(value, tally), bytes: tally.bytes }
  } catch (error) {
    if (error instanceof RangeError) throw tooDeep()
    throw error
  }
}

function copy(value: unknown, tally: { bytes: number }): Json {
  tally.bytes += NODE
  if (typeof value === 'string') {
    tally.bytes += value.length
    return value
  }
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : null
  if (typeof value === 'boolean' || value === null) return value
  if (typeof value !== 'object') throw notJson(value)
  return Array.isArray(value) ? copyList(value, tally) : copyObject(value, tally)
}

function copyList(list: readonly unknown[], tally: { bytes: number }): Json {
  const out: Json[] = []
  for (const item of list) out.push(item === undefined ? null : copy(item, tally))
  return Object.freeze(out)
}

function copyObject(source: object, tally: { bytes: number }): Json {
  const out: Record<string, Json> = {}
  for (const key of Object.keys(source)) {
    const item = (source as Record<string, unknown>)[key]
    if (item === undefined) continue
    tally.bytes += key.length
    if (key === '__proto__') Object.defineProperty(out, key, { value: copy(item, tally), enumerable: true })
    else out[key] = copy(item, tally)
  }
  return Object.freeze(out)
}
