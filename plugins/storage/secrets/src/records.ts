import type { CallContext } from '@svc/core'
import type { Json, Space, Store, StoreOp, StoreRecord } from '@svc/core/contracts'
import type { Sealed } from './seal.ts'

export const COLLECTION = 'secrets'

/**
 * Records survive a restore: an older backup would bring back replaced values, sealed with an older key. So a removed secret
 * leaves a record without a value.
 */
export const SPACE: Space = {
  name: 'secrets',
  version: 1,
  collections: { [COLLECTION]: { watched: true, lasting: true } },
}

/** The record of a secret; its key is the name. Times are Unix milliseconds. */
export interface SecretRecord extends Sealed {
  readonly created_at: number
  readonly changed_at: number
  /** Counts the values, not the keys that seal them. */
  readonly revision: number
}

export interface StoredSecret {
  readonly name: string
  /** The version of the record in the store. */
  readonly version: number
  readonly record: SecretRecord
}

const PAGE = 200

const isRecord = (value: Json): boolean =>
  typeof value === 'object' && value !== null && typeof (value as { key_id?: unknown }).key_id === 'string'

const storedOf = ({ key, version, value }: StoreRecord): StoredSecret[] =>
  isRecord(value) ? [{ name: key, version, record: value as unknown as SecretRecord }] : []

/** The record of a name, absent for a removed secret, and its version in the store. */
export async function find(
  store: Store,
  name: string,
  ctx: CallContext
): Promise<{ readonly version: number; readonly record?: SecretRecord }> {
  const stored = await store.get(COLLECTION, name, ctx)
  return (stored && storedOf(stored)[0]) ?? { version: stored?.version ?? 0 }
}

export async function all(store: Store, ctx: CallContext): Promise<StoredSecret[]> {
  const found: StoredSecret[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await store.range(COLLECTION, { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }, ctx)
    found.push(...page.records.flatMap(storedOf))
    if (page.next === undefined) return found
    cursor = page.next
  }
}

export const put = (name: string, record: SecretRecord, ifVersion: number): StoreOp => ({
  op: 'put',
  collection: COLLECTION,
  key: name,
  value: { ...record },
  ifVersion,
})

export const putRemoved = (name: string, ifVersion: number): StoreOp => ({
  op: 'put',
  collection: COLLECTION,
  key: name,
  value: { removed_at: Date.now() },
  ifVersion,
})
