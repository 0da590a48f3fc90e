import type { CallContext } from '@svc/core'
import type { Json, Space, Store } from '@svc/core/contracts'

/** What the store keeps of a session. The conversation keeps its messages. */
interface SessionRecord {
  readonly id: string
  readonly owner: string
  readonly conversation: string
  readonly cwd: string
  readonly mode: string
  readonly title: string
  /** ISO 8601. */
  readonly updated: string
}

/** The stored sessions of a principal. */
export interface SessionRecords {
  put(record: Omit<SessionRecord, 'owner'>, ctx: CallContext): Promise<void>
  get(id: string, ctx: CallContext): Promise<SessionRecord | undefined>
  /** Newest first; `cwd` selects those of one folder. */
  list(
    query: { readonly cwd?: string; readonly cursor?: string },
    ctx: CallContext
  ): Promise<{ readonly records: readonly SessionRecord[]; readonly next?: string }>
  delete(id: string, ctx: CallContext): Promise<void>
}

const COLLECTION = 'acp_sessions'
export const SPACE: Space = {
  name: 'acp',
  version: 1,
  collections: { [COLLECTION]: { indexes: { by_owner: ['owner', 'updated'], by_folder: ['owner', 'cwd', 'updated'] } } },
}

const PAGE = 50

export function createSessionRecords(store: Store): SessionRecords {
  const get: SessionRecords['get'] = async (id, ctx) => {
    const record = recordIn((await store.get(COLLECTION, id, ctx))?.value)
    return record?.owner === ctx.principal.id ? record : undefined
  }
  return {
    get,
    async put(record, ctx) {
      const value = { ...record, owner: ctx.principal.id }
      await store.batch([{ op: 'put', collection: COLLECTION, key: record.id, value }], {}, ctx)
    },
    async list({ cwd, cursor }, ctx) {
      const range =
        cwd === undefined
          ? { index: 'by_owner', equals: [ctx.principal.id] }
          : { index: 'by_folder', equals: [ctx.principal.id, cwd] }
      const query = { ...range, reverse: true, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }
      const { records, next } = await store.range(COLLECTION, query, ctx)
      return { records: records.flatMap(({ value }) => recordIn(value) ?? []), ...(next === undefined ? {} : { next }) }
    },
    async delete(id, ctx) {
      if (await get(id, ctx)) await store.batch([{ op: 'delete', collection: COLLECTION, key: id }], {}, ctx)
    },
  }
}

// only this file writes the collection
const recordIn = (value: Json | undefined) => value as unknown as SessionRecord | undefined
