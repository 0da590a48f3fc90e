import type { Fence, Json, Space, StoreOp } from '@svc/core/contracts'
import { storeConflict, storeFenced, storeNewer, storeUnknown } from '@svc/storage-kit'
import type { StoredCatalog, StoredCollection } from './catalog.ts'

// A group of calls shares a transaction. Its rows are locked and read first, then the calls are evaluated here, one after the other
// as if each had a transaction of its own, and what they change together is written. A call that fails changes nothing.

/** An operation with its values as JSON text. */
export type WireOp =
  | { readonly op: 'put'; readonly collection: string; readonly key: string; readonly text: string; readonly ifVersion?: number }
  | {
      readonly op: 'append'
      readonly log: string
      readonly id: string
      readonly texts: readonly string[]
      readonly ifLength?: number
    }
  | Exclude<StoreOp, { op: 'put' | 'append' }>

/** A call that writes. */
export type Call =
  | { readonly kind: 'batch'; readonly ops: readonly WireOp[]; readonly fence: Fence | undefined; readonly bytes: number }
  | { readonly kind: 'acquire'; readonly lease: string; readonly holder: string; readonly ttlMs: number }
  | { readonly kind: 'renew'; readonly lease: string; readonly fence: number; readonly ttlMs: number }
  | { readonly kind: 'release'; readonly lease: string; readonly fence: number }
  | { readonly kind: 'releaseHolder'; readonly prefix: string }
  | { readonly kind: 'probe' }

/** Results of a batch; of `acquire` and `renew` the fence and the end, or 0 and the milliseconds until it is free. */
export type Answer = readonly number[]

export interface RecordState {
  readonly collection: StoredCollection
  readonly key: string
  /** As it is stored. */
  readonly id?: number
  readonly storedVersion: number
  /** Only of collections with indexes. */
  readonly storedText?: string
  version: number
  /** Undefined: there is none. */
  text: string | undefined
  changed: boolean
  /** The result depends on its absence. */
  assertsAbsence: boolean
}
export interface StreamState {
  readonly log: number
  readonly name: string
  readonly id?: number
  readonly storedLength: number
  /** The stored entries are deleted. */
  dropped: boolean
  length: number
  /** In batches of entries, the last of them at `length`. */
  appended: string[]
  assertsAbsence: boolean
}
interface LeaseState {
  readonly name: string
  readonly stored: boolean
  holder: string
  /** 0: free. */
  fence: number
  expires: number
  changed: boolean
}

/** The rows of a group. */
export interface GroupState {
  readonly catalog: StoredCatalog
  readonly records: Map<string, RecordState>
  readonly streams: Map<string, StreamState>
  readonly leases: Map<string, LeaseState>
  /** Unix milliseconds by the clock of the database. */
  readonly now: number
  readonly nextFence: () => number
  readonly migrations: { readonly space: string; readonly version: number }[]
  isProbe: boolean
}

/** The name of a record or a stream in the state of a group: names are unique in their collection or log. */
export const rowName = (owner: number, key: string): string => `${owner}/${key}`

/** Evaluates one call. Throws the errors of the contract; then nothing is changed. */
export function evaluate(call: Call, state: GroupState, spaces: ReadonlyMap<string, Space>): Answer {
  if (call.kind === 'batch') return batch(call.ops, call.fence, state, spaces)
  if (call.kind === 'acquire') return acquire(call, state)
  if (call.kind === 'renew') return renew(call, state)
  if (call.kind === 'probe') {
    state.isProbe = true
    return [state.now]
  }
  for (const lease of call.kind === 'release' ? [leaseOf(state, call.lease)] : state.leases.values()) {
    const isMeant = call.kind === 'release' ? lease.fence === call.fence : lease.holder.startsWith(call.prefix)
    if (lease.fence !== 0 && isMeant) Object.assign(lease, { fence: 0, holder: '', expires: 0, changed: true })
  }
  return []
}

function leaseOf(state: GroupState, name: string): LeaseState {
  let lease = state.leases.get(name)
  if (!lease) state.leases.set(name, (lease = { name, stored: false, holder: '', fence: 0, expires: 0, changed: false }))
  return lease
}

function acquire({ lease: name, holder, ttlMs }: Extract<Call, { kind: 'acquire' }>, state: GroupState): Answer {
  const lease = leaseOf(state, name)
  if (lease.fence !== 0 && lease.expires > state.now) return [0, lease.expires - state.now]
  Object.assign(lease, { holder, fence: state.nextFence(), expires: state.now + ttlMs, changed: true })
  return [lease.fence, lease.expires]
}

function renew({ lease: name, fence, ttlMs }: Extract<Call, { kind: 'renew' }>, state: GroupState): Answer {
  const lease = leaseOf(state, name)
  if (lease.fence !== fence || lease.expires <= state.now) throw storeFenced(name, fence)
  Object.assign(lease, { expires: state.now + ttlMs, changed: true })
  return [fence, lease.expires]
}

function batch(ops: readonly WireOp[], fence: Fence | undefined, state: GroupState, spaces: ReadonlyMap<string, Space>): Answer {
  if (fence && leaseOf(state, fence.lease).fence !== fence.fence) throw storeFenced(fence.lease, fence.fence)
  for (const op of ops) checkOp(op, state.catalog, spaces)
  const undo: (() => void)[] = []
  try {
    return ops.map((op, at) => apply(op, at, state, undo))
  } catch (error) {
    for (const step of undo.reverse()) step()
    throw error
  }
}

function checkOp(op: WireOp, catalog: StoredCatalog, spaces: ReadonlyMap<string, Space>): void {
  if (op.op === 'migrated') {
    if (!spaces.has(op.space)) throw storeUnknown('space', op.space)
    return
  }
  const isRecord = op.op === 'put' || op.op === 'delete'
  const owner = isRecord ? catalog.collections.get(op.collection) : catalog.logs.get(op.log)
  if (!owner) throw isRecord ? storeUnknown('collection', op.collection) : storeUnknown('log', op.log)
  // A process that knows an older version of a space must not write its old format into migrated data.
  const stored = catalog.spaces.get(owner.space) ?? 0
  const known = spaces.get(owner.space)?.version ?? 0
  if (stored > known) throw storeNewer(`the space "${owner.space}"`, stored, known)
}

function expect(at: number, expected: number | undefined, actual: number): void {
  if (expected !== undefined && expected !== actual) throw storeConflict(at, expected, actual)
}

function apply(op: WireOp, at: number, state: GroupState, undo: (() => void)[]): number {
  if (op.op === 'migrated') {
    state.migrations.push({ space: op.space, version: op.version })
    undo.push(() => state.migrations.pop())
    return 0
  }
  if (op.op === 'put' || op.op === 'delete') {
    const record = state.records.get(rowName(state.catalog.collections.get(op.collection)!.id, op.key))!
    return changeRecord(record, op, at, undo)
  }
  return changeStream(state.streams.get(rowName(state.catalog.logs.get(op.log)!.id, op.id))!, op, at, undo)
}

function changeRecord(
  record: RecordState,
  op: Extract<WireOp, { op: 'put' | 'delete' }>,
  at: number,
  undo: (() => void)[]
): number {
  expect(at, op.ifVersion, record.version)
  const { version, text, changed, assertsAbsence } = record
  undo.push(() => Object.assign(record, { version, text, changed, assertsAbsence }))
  if (op.op === 'put') Object.assign(record, { version: version + 1, text: op.text, changed: true })
  else if (version === 0) record.assertsAbsence = true
  else Object.assign(record, { version: 0, text: undefined, changed: true })
  return record.version
}

function changeStream(
  stream: StreamState,
  op: Extract<WireOp, { op: 'append' | 'drop' }>,
  at: number,
  undo: (() => void)[]
): number {
  const { length, dropped, appended, assertsAbsence } = stream
  const count = appended.length
  if (op.op === 'append') expect(at, op.ifLength, length)
  undo.push(() => {
    appended.length = count
    Object.assign(stream, { length, dropped, appended, assertsAbsence })
  })
  if (op.op === 'drop') {
    Object.assign(stream, {
      length: 0,
      dropped: stream.id !== undefined,
      appended: [],
      assertsAbsence: true,
    })
    return 0
  }
  if (op.texts.length === 0 && length === 0) stream.assertsAbsence = true
  for (const text of op.texts) appended.push(text)
  stream.length += op.texts.length
  return stream.length
}

/** The value of a record, if its collection has indexes to compute. */
export const valueOf = ({ indexes, texts }: StoredCollection, text: string | undefined): Json =>
  text !== undefined && (indexes.length > 0 || texts.length > 0) ? (JSON.parse(text) as Json) : null
