import { type CallContext, codeOf } from '@svc/core'
import type { Json, Lease, LeaseRequest, Store } from '@svc/core/contracts'

/** A record of the store; version 0 if there is none. */
export interface StoredRecord {
  readonly version: number
  readonly value: Json | undefined
}

/** The operations that the functions below need. */
export type RecordStore = Pick<Store, 'get' | 'batch'>

export async function readRecord(store: RecordStore, collection: string, key: string, ctx: CallContext): Promise<StoredRecord> {
  const record = await store.get(collection, key, ctx)
  return { version: record?.version ?? 0, value: record?.value }
}

/** Writes the result of `change`, and retries on a concurrent change; `undefined` writes nothing. Returns the current record. */
export async function changeRecord(
  store: RecordStore,
  { collection, key }: { readonly collection: string; readonly key: string },
  change: (before: StoredRecord) => Json | undefined,
  ctx: CallContext
): Promise<StoredRecord> {
  for (;;) {
    ctx.signal.throwIfAborted()
    const before = await readRecord(store, collection, key, ctx)
    const value = change(before)
    if (value === undefined) return before
    try {
      await store.batch([{ op: 'put', collection, key, value, ifVersion: before.version }], {}, ctx)
      return { version: before.version + 1, value }
    } catch (error) {
      if (codeOf(error) !== 'STORE_CONFLICT') throw error
    }
  }
}

/** Acquires a lease unless it is taken. A holder gets back a lease that it already has, so use a new holder for each claim. */
export async function tryAcquire(
  store: Pick<Store, 'acquire'>,
  lease: string,
  request: Omit<LeaseRequest, 'waitMs'>,
  ctx: CallContext
): Promise<Lease | undefined> {
  try {
    return await store.acquire(lease, { ...request, waitMs: 0 }, ctx)
  } catch (error) {
    if (codeOf(error) === 'LEASE_BUSY') return undefined
    throw error
  }
}

/** Ignores a conflict with another process: `.catch(onlyConflict)`. */
export function onlyConflict(error: unknown): void {
  if (codeOf(error) !== 'STORE_CONFLICT') throw error
}
