import { type CallContext, codeOf } from '@svc/core'
import type { Fence, Json, Store } from '@svc/core/contracts'

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

/** Acquires a lease without waiting. Returns `undefined` if another holder has it. */
export async function tryAcquire(
  store: Pick<Store, 'acquire'>,
  lease: string,
  as: { readonly holder: string; readonly ttlMs: number },
  ctx: CallContext
): Promise<Fence | undefined> {
  try {
    const { fence } = await store.acquire(lease, { ...as, waitMs: 0 }, ctx)
    return { lease, fence }
  } catch (error) {
    if (codeOf(error) !== 'LEASE_BUSY') throw error
    return undefined
  }
}
