import type { CallContext } from '@svc/core'
import type { Store, StoreOp } from '@svc/core/contracts'
import { archiveGone } from './errors.ts'

/** Archives of plans, in the store of a cluster: any of its nodes can apply a plan. */
export const ARCHIVES = 'plugin_archives'

/** Characters of Base64 in a part. */
const PART = 4 * 1024 ** 2

const keyOf = (hash: string, part: number) => `${hash}.${part}`

/** Stores an archive in Base64 under the hash of its bytes. Returns the number of its parts. */
export async function shareArchive(store: Store, hash: string, archive: string, ctx: CallContext): Promise<number> {
  const parts = Math.ceil(archive.length / PART)
  for (let part = 0; part < parts; part++) {
    const value = { base64: archive.slice(part * PART, (part + 1) * PART) }
    await store.batch([{ op: 'put', collection: ARCHIVES, key: keyOf(hash, part), value }], {}, ctx)
  }
  return parts
}

/** The archive in Base64. Its bytes are not checked. Throws INVALID_VALUE if a part is missing. */
export async function sharedArchive(store: Store, hash: string, parts: number, ctx: CallContext): Promise<string> {
  let archive = ''
  for (let part = 0; part < parts; part++) {
    const record = await store.get(ARCHIVES, keyOf(hash, part), ctx)
    const { base64 } = Object(record?.value) as { readonly base64?: unknown }
    if (typeof base64 !== 'string') throw archiveGone()
    archive += base64
  }
  return archive
}

/** The operations that remove an archive. */
export const dropArchive = (hash: string, parts: number): StoreOp[] =>
  Array.from({ length: parts }, (_, part) => ({ op: 'delete', collection: ARCHIVES, key: keyOf(hash, part) }))
