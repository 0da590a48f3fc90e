import type { Use } from '@svc/core'
import type { Fence, Lease, Space, Store, StoreOp } from '@svc/core/contracts'
import {
  checkLease,
  checkOps,
  checkRange,
  checkRead,
  checkSize,
  createCatalog,
  createLeaseQueue,
  storeClosed,
  storeInvalid,
  storeNewer,
  storeUnavailable,
} from '@svc/space'
import { isDeclared } from './catalog.ts'
import { createLink } from './link.ts'
import { createReader } from './reader.ts'
import { createWatches } from './watch.ts'
import { type Answer, UNASKED, type WireOp } from './wire.ts'

export interface SqliteOptions {
  /** The database file; it and its folder are made when they are missing. */
  readonly path: string
  /** Milliseconds to wait for a file that another program has locked. Default 10,000. */
  readonly busyMs?: number
}

/** A store in a file; disposing of it answers all writes and closes the file. */
export type SqliteStore = Store & AsyncDisposable

/** Opens a durable store: `await using store = createSqliteStore({ path: '/var/lib/svc/svc.db' })`. Trouble with the file comes with the first call. */
export function createSqliteStore({ path, busyMs = 10_000 }: SqliteOptions): SqliteStore {
  const catalog = createCatalog()
  const reader = createReader(path, busyMs)
  const watches = createWatches(reader)
  let generation = 0
  let closed = false
  const link = createLink({
    path,
    busyMs,
    committed(news) {
      if (news.generation > generation) {
        if (generation > 0) reader.reset()
        generation = news.generation
      }
      if (news.watched) watches.stir()
    },
  })
  const queue = createLeaseQueue({
    async attempt(lease, { holder, ttlMs }, looks) {
      // Whoever waits for another process only looks, so as not to take the file's one write lock for nothing.
      const heldUntil = looks > 0 ? await reader.reading(reads => reads.heldUntil(lease)) : 0
      if (heldUntil > Date.now()) return { busyUntil: heldUntil }
      const answer = await link.send(['acquire', lease, holder, ttlMs])
      return answer[0] === 0 ? { busyUntil: answer[1]! } : leaseOf(lease, answer)
    },
    release: lease => release(lease),
    lookAgain: looks => Math.min(50, 2 ** looks),
  })
  const release = async ({ lease, fence }: Fence) => {
    await link.send(['release', lease, fence])
    queue.freed(lease)
  }
  const enter = ({ signal }: Use) => {
    signal.throwIfAborted()
    if (closed) throw storeClosed()
  }

  return {
    async open(space, use) {
      enter(use)
      catalog.check(space)
      const version = await declare(space)
      catalog.declare(space)
      return { version }
    },
    async get(collection, key, use) {
      enter(use)
      catalog.collection(collection)
      return reader.reading(reads => reads.get(collection, key), use.signal)
    },
    async range(collection, query, use) {
      enter(use)
      const { paths, span } = checkRange(collection, query, catalog)
      return reader.reading(reads => reads.range(collection, paths, span, query.reverse ?? false, query.limit), use.signal)
    },
    async read(log, id, query, use) {
      enter(use)
      checkRead(log, id, query, catalog)
      return reader.reading(reads => reads.read(log, id, query), use.signal)
    },
    async batch(ops, { fence }, use) {
      enter(use)
      checkOps(ops, catalog)
      const answer = await link.send(['batch', toWire(ops), fence?.lease ?? '', fence?.fence ?? 0], use.signal)
      return { results: answer.slice(0, ops.length) }
    },
    async acquire(lease, request, use) {
      enter(use)
      checkLease(lease, request.ttlMs, request.waitMs, request.holder)
      return queue.acquire(lease, request, use)
    },
    async renew({ lease, fence }, ttlMs, use) {
      enter(use)
      checkLease(lease, ttlMs)
      return leaseOf(lease, await link.send(['renew', lease, fence, ttlMs], use.signal))
    },
    async release(lease, use) {
      enter(use)
      await release(lease)
    },
    async releaseHolder(holderPrefix, use) {
      enter(use)
      await link.send(['releaseHolder', holderPrefix])
      queue.freed()
    },
    watch(collection, use) {
      catalog.collection(collection)
      if (closed) throw storeClosed()
      return watches.watch(collection, use.signal)
    },
    async probe(use) {
      enter(use)
      const [written] = await link.send(['probe'], use.signal)
      const read = await reader.reading(reads => reads.probed(), use.signal)
      if (read < written!) throw storeUnavailable('the store does not show what was written', 'start the server again')
      return { kind: 'sqlite', durable: true }
    },
    async [Symbol.asyncDispose]() {
      if (closed) return
      closed = true
      queue.close()
      watches.close()
      await link.close(() => reader.reset())
    },
  }

  /** Needs the writer only when the file does not have all of the space yet. */
  async function declare(space: Space): Promise<number> {
    const stored = await reader.catalog()
    const version = stored?.spaces.get(space.name) ?? 0
    if (version > space.version) throw storeNewer(`the space "${space.name}"`, version, space.version)
    link.remember(space)
    const opened = link.send(['open', space])
    if (stored && isDeclared(stored, space)) {
      // The writer only takes note; should it fail, the next write fails for the same reason.
      opened.catch(() => {})
      return version
    }
    const [before] = await opened
    await reader.catalog()
    return before!
  }
}

const leaseOf = (lease: string, [fence, expiresAt]: Answer): Lease => ({ lease, fence: fence!, expiresAt: expiresAt! })

/** The operations with their values as JSON text, which is what the file keeps. */
function toWire(ops: readonly StoreOp[]): WireOp[] {
  let sum = 0
  const text = (value: unknown) => {
    const json = stringify(value)
    checkSize(json.length, (sum += json.length))
    return json
  }
  return ops.map((op): WireOp => {
    if (op.op === 'put') return ['put', op.collection, op.key, text(op.value), op.ifVersion ?? UNASKED]
    if (op.op === 'append') return ['append', op.log, op.id, op.values.map(text), op.ifLength ?? UNASKED]
    if (op.op === 'delete') return ['delete', op.collection, op.key, op.ifVersion ?? UNASKED]
    return op.op === 'drop' ? ['drop', op.log, op.id] : ['migrated', op.space, op.version]
  })
}

function stringify(value: unknown): string {
  try {
    const json = JSON.stringify(value) as string | undefined
    if (json !== undefined) return json
  } catch (error) {
    throw storeInvalid(
      `a value must be JSON: ${error instanceof RangeError ? 'it is nested too deeply' : 'it holds what JSON cannot'}`
    )
  }
  throw storeInvalid(`a value must be JSON, was of type ${typeof value}`)
}
