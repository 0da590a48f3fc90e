import { randomUUID } from 'node:crypto'
import type { CallContext } from '@svc/core'
import type { Json, RangeQuery, Store } from '@svc/core/contracts'
import { type Post, POSTS } from './space.ts'

/** A post is for workers that are there now. Watches deliver it within seconds. */
const KEPT_MS = 60_000
/** Posts of a sender that no longer runs: long, because its clock can differ. */
const ABANDONED_MS = 3_600_000
const PAGE = 1_000

export interface Posts {
  /** Sends a post. Posts of this worker take effect in the order of the calls. */
  send(post: Omit<Post, 'from' | 'at'>, ctx: CallContext): Promise<void>
  /** Deletes old posts of this worker, and those that another one has left. */
  prune(now?: number): Promise<void>
}

export function createPosts(store: Store, from: string, lasting: CallContext): Posts {
  const remove = async (query: Omit<RangeQuery, 'limit'>) => {
    for (let hasMore = true; hasMore; ) {
      const { records, next } = await store.range(POSTS, { ...query, limit: PAGE }, lasting)
      const ops = records.map(({ key }) => ({ op: 'delete' as const, collection: POSTS, key }))
      if (ops.length > 0) await store.batch(ops, {}, lasting)
      hasMore = next !== undefined
    }
  }
  return {
    async send(post, ctx) {
      const value = { ...post, from, at: Date.now() } as unknown as Json
      await store.batch([{ op: 'put', collection: POSTS, key: randomUUID(), value }], {}, ctx)
    },
    async prune(now = Date.now()) {
      await remove({ index: 'by_sender', equals: [from], to: now - KEPT_MS })
      await remove({ index: 'by_time', to: now - ABANDONED_MS })
    },
  }
}
