import type { Counts, Store } from '@svc/core/contracts'
import {
  checkCount,
  checkLease,
  checkOps,
  checkRead,
  clockOffset,
  createCatalog,
  hit,
  steadyNow,
  type StoredWindow,
  storeClosed,
} from '@svc/storage-kit'
import { createChanges } from './changes.ts'
import { createData } from './data.ts'
import { createLeases } from './leases.ts'

/** Creates a store that lives as long as its process. Its disposal ends watches and waits. */
//js: /** @type {() => import('@svc/core/contracts').Store & import('@svc/core/contracts').Counts & AsyncDisposable} */
export const createSampleWord = (): Store & Counts & AsyncDisposable => {
  const catalog = createCatalog()
  const data = createData(catalog)
  const leases = createLeases()
  const changes = createChanges()
  //js: /** @type {Map<string, readonly import('@svc/storage-kit').StoredWindow[]>} */
  const counts = new Map<string, readonly StoredWindow[]>()
  let isClosed = false
  //js: /** @type {(ctx: import('@svc/core').CallContext) => void} */
  const enter = ({ signal }: { readonly signal: AbortSignal }) => {
    signal.throwIfAborted()
    if (isClosed) throw storeClosed()
  }
  return {
    async open(space, ctx) {
      enter(ctx)
      return { version: data.open(space) }
    },
    async get(collection, key, ctx) {
      enter(ctx)
      return data.get(collection, key)
    },
    async range(collection, query, ctx) {
      enter(ctx)
      return data.range(collection, query)
    },
    async read(log, id, query, ctx) {
      enter(ctx)
      checkRead(log, id, query, catalog)
      return data.read(log, id, query)
    },
    async batch(ops, { fence }, ctx) {
      enter(ctx)
      checkOps(ops, catalog)
      if (fence) leases.check(fence)
      const { results, changed } = data.batch(ops)
      changes.notify(changed)
      return { results }
    },
    async acquire(lease, request, ctx) {
      enter(ctx)
      checkLease(lease, request.ttlMs, request.waitMs, request.holder)
      return leases.queue.acquire(lease, request, ctx)
    },
    async renew(lease, ttlMs, ctx) {
      enter(ctx)
      checkLease(lease.lease, ttlMs)
      return leases.renew(lease, ttlMs)
    },
    async release(lease, ctx) {
      enter(ctx)
      leases.release(lease)
    },
    async releaseHolder(holderPrefix, ctx) {
      enter(ctx)
      leases.releaseHolder(holderPrefix)
    },
    async count(key, windows, ctx) {
      enter(ctx)
      checkCount(key, windows)
      const { counted, kept } = hit(counts.get(key) ?? [], windows, steadyNow())
      counts.set(key, kept)
      return counted
    },
    watch(collection, ctx) {
      catalog.collection(collection)
      return changes.watch(collection, ctx.signal)
    },
    async probe(ctx) {
      enter(ctx)
      const [before, clock] = [Date.now(), steadyNow()]
      const clockOffsetMs = clockOffset(clock, before, Date.now())
      return { kind: 'sample_word', durable: false, scope: 'process', role: 'primary', clockOffsetMs }
    },
    async [Symbol.asyncDispose]() {
      isClosed = true
      leases.queue.close()
      changes.close()
    },
  }
}
