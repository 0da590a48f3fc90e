import { randomUUID } from 'node:crypto'
import type { CallContext, Log } from '@svc/core'
import type { Json, Store } from '@svc/core/contracts'
import { busTooLarge } from './errors.ts'
import { type Post, POSTS } from './space.ts'

/** A post is for workers that are there now. Watches deliver it within seconds. */
const KEPT_MS = 60_000
const PRUNE_MS = 30_000
const PAGE = 1_000
const LARGEST = 64 * 1024

export interface Posts {
  /** Sends a post. Posts of this worker take effect in the order of the calls. Throws BUS_TOO_LARGE. */
  send(post: Omit<Post, 'from' | 'at'>, ctx: CallContext): Promise<void>
  /** Deletes old posts from now on, until `lasting.signal` aborts. */
  prune(): void
}

const jsonBytes = (value: Json): number => Buffer.byteLength(JSON.stringify(value) ?? '')

/** Throws BUS_TOO_LARGE. */
export function checkSize(what: string, value: Json, limit = LARGEST): void {
  const bytes = jsonBytes(value)
  if (bytes > limit) throw busTooLarge(what, bytes, limit)
}

export function createPosts(store: Store, from: string, log: Log, lasting: CallContext): Posts {
  const prune = async () => {
    const query = { index: 'by_time', to: Date.now() - KEPT_MS, limit: PAGE }
    const { records } = await store.range(POSTS, query, lasting)
    if (records.length === 0) return
    const ops = records.map(({ key }) => ({ op: 'delete' as const, collection: POSTS, key }))
    await store.batch(ops, {}, lasting)
  }
  return {
    async send(post, ctx) {
      const value = { ...post, from, at: Date.now() } as unknown as Json
      await store.batch([{ op: 'put', collection: POSTS, key: randomUUID(), value }], {}, ctx)
    },
    prune() {
      const timer = setInterval(() => {
        prune().catch((err: unknown) => log.debug({ err }, 'failed to delete old messages of the bus'))
      }, PRUNE_MS)
      timer.unref()
      lasting.signal.addEventListener('abort', () => clearInterval(timer), { once: true })
    },
  }
}
