import { randomUUID } from 'node:crypto'
import type { CallContext } from '@svc/core'
import type { Space, Store } from '@svc/core/contracts'
import { onlyConflict } from './records.ts'

const IDENTITY = 'store_identity'
const SPACE: Space = { name: IDENTITY, version: 1, collections: { [IDENTITY]: {} } }
const KEY = 'store'

/**
 * The name of a store, the same for all processes that share it. The first caller draws it at random. A copy of a database has the name
 * of the original. Throws the errors of the store.
 */
export async function storeIdentity(store: Store, ctx: CallContext): Promise<string> {
  await store.open(SPACE, ctx)
  const known = await stored(store, ctx)
  if (known !== undefined) return known
  const value = { id: randomUUID() }
  // another process can be first
  await store.batch([{ op: 'put', collection: IDENTITY, key: KEY, value, ifVersion: 0 }], {}, ctx).catch(onlyConflict)
  return (await stored(store, ctx)) ?? value.id
}

async function stored(store: Store, ctx: CallContext): Promise<string | undefined> {
  const record = await store.get(IDENTITY, KEY, ctx)
  return record && String(Object(record.value).id)
}
