import { checkCount, checkOps, checkRange, checkRead, clockOffset, createCatalog, storeClosed } from '@svc/storage-kit'
import { openDrawers } from './drawers.js'
import { createLeases } from './leases.js'
import { createRecords } from './records.js'
import { createWatches } from './watches.js'

/**
 * Opens the store in a file, and creates a missing file.
 * @type {(file: string) => import('@svc/core/contracts').Store & import('@svc/core/contracts').Counts & AsyncDisposable}
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
    async open(space, ctx) {
      enter(ctx)
      catalog.check(space)
      const version = records.version(space)
      catalog.declare(space)
      return { version }
    },
    async get(collection, key, ctx) {
      enter(ctx)
      catalog.collection(collection)
      return records.get(collection, key)
    },
    async range(collection, query, ctx) {
      enter(ctx)
      return records.range(collection, query, checkRange(collection, query, catalog))
    },
    async read(log, id, query, ctx) {
      enter(ctx)
      checkRead(log, id, query, catalog)
      return records.read(log, id, query)
    },
    async batch(ops, { fence }, ctx) {
      enter(ctx)
      checkOps(ops, catalog)
      const first = () => {
        if (fence) leases.check(fence)
        watches.note(ops)
      }
      return { results: records.batch(ops, first) }
    },
    async count(key, windows, ctx) {
      enter(ctx)
      checkCount(key, windows)
      return records.count(key, windows)
    },
    watch: (collection, { signal }) => watches.watch(collection, signal),
    async probe(ctx) {
      enter(ctx)
      drawers.atOnce(() => {})
      const [before, now] = [Date.now(), drawers.clock()]
      const clockOffsetMs = clockOffset(now, before, Date.now())
      return { kind: 'cabinet', durable: true, scope: 'machine', role: 'primary', clockOffsetMs }
    },
    async [Symbol.asyncDispose]() {
      shut()
      leases.close()
      watches.close()
      drawers.close()
    },
  }
}

/** Checks that each call runs first. */
function createDoor() {
  let isShut = false
  return {
    shut: () => void (isShut = true),
    /** @type {(ctx: import('@svc/core').CallContext) => void} */
    enter: ({ signal }) => {
      signal.throwIfAborted()
      if (isShut) throw storeClosed()
    },
  }
}
