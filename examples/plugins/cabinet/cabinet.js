import { checkCount, checkOps, checkRange, checkRead, createCatalog, storeClosed } from '@svc/storage-kit'
import { openDrawers } from './drawers.js'
import { createLeases } from './leases.js'
import { createRecords } from './records.js'
import { createWatches } from './watches.js'

/**
 * Opens the store in a file, which is made where there is none.
 * @type {(file: string) => import('@svc/core/contracts').Store & AsyncDisposable}
 */
export function createCabinet(file) {
  const drawers = openDrawers(file)
  const catalog = createCatalog()
  const records = createRecords(drawers)
  const watches = createWatches(drawers, catalog)
  const { enter, shut } = createDoor()
  const leases = createLeases(drawers, enter)
  return {
    ...leases.contract,
    async open(space, use) {
      enter(use)
      catalog.check(space)
      const version = records.version(space)
      catalog.declare(space)
      return { version }
    },
    async get(collection, key, use) {
      enter(use)
      catalog.collection(collection)
      return records.get(collection, key)
    },
    async range(collection, query, use) {
      enter(use)
      return records.range(collection, query, checkRange(collection, query, catalog))
    },
    async read(log, id, query, use) {
      enter(use)
      checkRead(log, id, query, catalog)
      return records.read(log, id, query)
    },
    async batch(ops, { fence }, use) {
      enter(use)
      checkOps(ops, catalog)
      const first = () => {
        if (fence) leases.check(fence)
        watches.note(ops)
      }
      return { results: records.batch(ops, first) }
    },
    async count(key, windows, use) {
      enter(use)
      checkCount(key, windows)
      return records.count(key, windows)
    },
    watch: (collection, { signal }) => watches.watch(collection, signal),
    async probe(use) {
      enter(use)
      drawers.atOnce(() => {})
      return { kind: 'cabinet', durable: true }
    },
    async [Symbol.asyncDispose]() {
      shut()
      leases.close()
      watches.close()
      drawers.close()
    },
  }
}

/** What each call passes first. */
function createDoor() {
  let isShut = false
  return {
    shut: () => void (isShut = true),
    /** @type {(use: import('@svc/core').Use) => void} */
    enter: ({ signal }) => {
      signal.throwIfAborted()
      if (isShut) throw storeClosed()
    },
  }
}
