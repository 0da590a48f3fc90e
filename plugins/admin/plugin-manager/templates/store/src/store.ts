import type { Store } from '@svc/core/contracts'
import { checkCount, checkLease, checkOps, checkRead, createCatalog, hit, type KeptWindow, storeClosed } from '@svc/storage-kit'
import { createChanges } from './changes.ts'
import { createData } from './data.ts'
import { createLeases } from './leases.ts'

/** Makes a store that lives as long as its process; disposing of it ends its watches and those who wait. */
//js: /** @type {() => import('@svc/core/contracts').Store & AsyncDisposable} */
export const createSampleWord = (): Store & AsyncDisposable => {
  const catalog = createCatalog()
  const data = createData(catalog)
  const leases = createLeases()
  const changes = createChanges()
  //js: /** @type {Map<string, readonly import('@svc/storage-kit').KeptWindow[]>} */
  const counts = new Map<string, readonly KeptWindow[]>()
  let isClosed = false
  //js: /** @type {(use: import('@svc/core').Use) => void} */
  const enter = ({ signal }: { readonly signal: AbortSignal }) => {
    signal.throwIfAborted()
    if (isClosed) throw storeClosed()
  }
  return {
    async open(space, use) {
      enter(use)
      return { version: data.open(space) }
    },
    async get(collection, key, use) {
      enter(use)
      return data.get(collection, key)
    },
    async range(collection, query, use) {
      enter(use)
      return data.range(collection, query)
    },
    async read(log, id, query, use) {
      enter(use)
      checkRead(log, id, query, catalog)
      return data.read(log, id, query)
    },
    async batch(ops, { fence }, use) {
      enter(use)
      checkOps(ops, catalog)
      if (fence) leases.check(fence)
      const { results, changed } = data.batch(ops)
      changes.tell(changed)
      return { results }
    },
    async acquire(lease, request, use) {
      enter(use)
      checkLease(lease, request.ttlMs, request.waitMs, request.holder)
      return leases.queue.acquire(lease, request, use)
    },
    async renew(lease, ttlMs, use) {
      enter(use)
      checkLease(lease.lease, ttlMs)
      return leases.renew(lease, ttlMs)
    },
    async release(lease, use) {
      enter(use)
      leases.release(lease)
    },
    async releaseHolder(holderPrefix, use) {
      enter(use)
      leases.releaseHolder(holderPrefix)
    },
    async count(key, windows, use) {
      enter(use)
      checkCount(key, windows)
      const { counted, kept } = hit(counts.get(key) ?? [], windows, Date.now())
      counts.set(key, kept)
      return counted
    },
    watch(collection, use) {
      catalog.collection(collection)
      return changes.watch(collection, use.signal)
    },
    async probe(use) {
      enter(use)
      return { kind: 'sample_word', durable: false, shared: false }
    },
    async [Symbol.asyncDispose]() {
      isClosed = true
      leases.queue.close()
      changes.close()
    },
  }
}
