import type {
  CountWindow,
  Counted,
  Counts,
  Json,
  LogEntry,
  LogQuery,
  RangePage,
  RangeQuery,
  Space,
  Store,
  TextHit,
  TextIndex,
  TextPage,
  TextQuery,
} from '@svc/core/contracts'
import {
  byBytes,
  type Catalog,
  checkCount,
  checkLease,
  checkOps,
  checkRange,
  checkRead,
  checkSearch,
  clockOffset,
  createCatalog,
  createSnippets,
  cursorOf,
  endOf,
  hit,
  type HitPlace,
  type StoredWindow,
  steadyNow,
  storeClosed,
  storeNewer,
} from '@svc/storage-kit'
import { createBatches, type StoreContents } from './batch.ts'
import { createChanges } from './changes.ts'
import { createLeases, type MemoryLeases } from './leases.ts'
import { createCapacity, type CapacityLimits } from './capacity.ts'
import { createTable, type Table } from './table.ts'
import { compareKeys, type MemoryText } from './text-search.ts'

/** A store that lives as long as its process. Its disposal ends watches and waits. */
export type MemoryStore = Store & Counts & TextIndex & AsyncDisposable

/** Limits of the store. */
export interface MemoryLimits extends CapacityLimits {
  /** Maximum number of counted keys. Default 100,000. */
  readonly maxCounts?: number
}

/** Creates a bounded store in memory: `createMemoryStore({ maxRecords: 1000, maxBytes: 1 << 20, evict: true })`. */
export function createMemoryStore(limits: MemoryLimits): MemoryStore {
  const catalog = createCatalog()
  const held: StoreContents = { tables: new Map(), logs: new Map(), versions: new Map() }
  const batches = createBatches(held, catalog, createCapacity(limits))
  const changes = createChanges()
  const leases = createLeases()
  const counts = createCounts(limits.maxCounts ?? 100_000)
  let closed = false
  const enter = (signal: AbortSignal) => {
    signal.throwIfAborted()
    if (closed) throw storeClosed()
  }

  return {
    async open(space, ctx) {
      enter(ctx.signal)
      return { version: open(space, catalog, held) }
    },
    ...createReads(catalog, held, enter),
    async batch(ops, { fence }, ctx) {
      enter(ctx.signal)
      checkOps(ops, catalog)
      if (fence) leases.check(fence)
      const done = batches.run(ops)
      changes.notify(done.changes)
      return { results: done.results }
    },
    ...createClaims(leases, counts, enter),
    watch(collection, ctx) {
      catalog.collection(collection)
      return changes.watch(collection, ctx.signal)
    },
    async probe(ctx) {
      enter(ctx.signal)
      const [before, clock] = [Date.now(), steadyNow()]
      return {
        kind: 'memory',
        durable: false,
        scope: 'process',
        role: 'primary',
        clockOffsetMs: clockOffset(clock, before, Date.now()),
      }
    },
    async [Symbol.asyncDispose]() {
      closed = true
      leases.queue.close()
      changes.close()
    },
  }
}

type Claims = Pick<Store, 'acquire' | 'renew' | 'release' | 'releaseHolder'> & Counts

function createClaims(leases: MemoryLeases, counts: MemoryCounts, enter: (signal: AbortSignal) => void): Claims {
  return {
    async acquire(lease, request, ctx) {
      enter(ctx.signal)
      checkLease(lease, request.ttlMs, request.waitMs, request.holder)
      return leases.queue.acquire(lease, request, ctx)
    },
    async renew(lease, ttlMs, ctx) {
      enter(ctx.signal)
      checkLease(lease.lease, ttlMs)
      return leases.renew(lease, ttlMs)
    },
    async release(lease, ctx) {
      enter(ctx.signal)
      leases.release(lease)
    },
    async releaseHolder(holderPrefix, ctx) {
      enter(ctx.signal)
      leases.releaseHolder(holderPrefix)
    },
    async count(key, windows, ctx) {
      enter(ctx.signal)
      checkCount(key, windows)
      return counts.count(key, windows)
    },
  }
}

function createReads(
  catalog: Catalog,
  held: StoreContents,
  enter: (signal: AbortSignal) => void
): Pick<Store, 'get' | 'range' | 'read'> & TextIndex {
  return {
    async get(collection, key, ctx) {
      enter(ctx.signal)
      catalog.collection(collection)
      return held.tables.get(collection)!.get(key)?.record
    },
    async range(collection, query, ctx) {
      enter(ctx.signal)
      return range(collection, query, catalog, held)
    },
    async search(collection, query, ctx) {
      enter(ctx.signal)
      const checked = checkSearch(collection, query, catalog)
      const table = held.tables.get(collection)!
      for (let text: MemoryText | undefined; text !== table.text(query.index); ) {
        text = table.text(query.index)
        await text.catchUp(ctx.signal)
      }
      return search(table, query, checked)
    },
    async read(log, id, query, ctx) {
      enter(ctx.signal)
      checkRead(log, id, query, catalog)
      return read(held.logs.get(log)!.get(id)?.values ?? [], query)
    },
  }
}

function open(space: Space, catalog: Catalog, held: StoreContents): number {
  catalog.check(space)
  const stored = held.versions.get(space.name) ?? 0
  if (stored > space.version) throw storeNewer(`the space "${space.name}"`, stored, space.version)
  catalog.declare(space)
  for (const name of Object.keys(space.collections ?? {})) {
    const declared = catalog.collection(name)
    const table = held.tables.get(name)
    if (table) table.declare(declared)
    else held.tables.set(name, createTable(declared))
  }
  for (const log of space.logs ?? []) if (!held.logs.has(log)) held.logs.set(log, new Map())
  if (stored === 0) held.versions.set(space.name, space.version)
  return stored
}

function range(collection: string, query: RangeQuery, catalog: Catalog, held: StoreContents): RangePage {
  const { paths, span } = checkRange(collection, query, catalog)
  const table = held.tables.get(collection)!
  const high = span.high === undefined ? undefined : byBytes(span.high)
  const bounds = { low: byBytes(span.low), behind: span.behind ?? false, high }
  const places = table.order(paths).slice(bounds, query.reverse ?? false, query.limit + 1)
  const records = places.slice(0, query.limit).map(({ item }) => table.get(item)!.record)
  return places.length > query.limit ? { records, next: cursorOf(places[query.limit - 1]!.position) } : { records }
}

function search(table: Table, query: TextQuery, checked: ReturnType<typeof checkSearch>): TextPage {
  const { fields, parsed, filter, after, cursorOf: cursorBehind } = checked
  const isBehind = ({ score, key }: HitPlace) =>
    !after || score < after.score || (score === after.score && compareKeys(key, after.key) > 0)
  const found = table.text(query.index).search(parsed, filter).filter(isBehind)
  const snippets = createSnippets(parsed)
  const hits = found.slice(0, query.limit).map(({ score, key }): TextHit => {
    const { record } = table.get(key)!
    return { record, score, snippets: snippets.of(fields.fields, record.value) }
  })
  return found.length > query.limit ? { hits, next: cursorBehind(found[query.limit - 1]!) } : { hits }
}

function read(texts: readonly string[], { from, reverse, limit }: LogQuery): LogEntry[] {
  const end = reverse ? Math.min(from ?? texts.length, texts.length) : Math.min((from ?? 1) - 1 + limit, texts.length)
  const start = reverse ? Math.max(0, end - limit) : (from ?? 1) - 1
  const entries = texts.slice(start, end).map((text, at): LogEntry => ({ seq: start + at + 1, value: JSON.parse(text) as Json }))
  return reverse ? entries.reverse() : entries
}

/** The counted hits of one process. */
interface MemoryCounts {
  count(key: string, windows: readonly CountWindow[]): Counted
  /** Number of keys. */
  readonly size: number
}

/** Keys that are checked for expiry with each new key. */
const SWEPT = 2

/** Creates counts with a maximum number of keys; beyond it, keys whose windows began first are deleted. */
export function createCounts(most: number): MemoryCounts {
  // In the order in which their longest windows began.
  const keys = new Map<string, readonly StoredWindow[]>()
  let sweeper = keys.entries()

  const sweep = (now: number) => {
    for (let looks = 0; looks < SWEPT; looks++) {
      const next = sweeper.next()
      if (next.done) sweeper = keys.entries()
      else if (endOf(next.value[1]) <= now) keys.delete(next.value[0])
    }
  }
  const begin = (key: string, kept: readonly StoredWindow[], now: number) => {
    keys.delete(key)
    keys.set(key, kept)
    sweep(now)
    for (const oldest of keys.keys()) {
      if (keys.size <= most) break
      keys.delete(oldest)
    }
  }
  return {
    get size() {
      return keys.size
    },
    count(key, windows) {
      const now = steadyNow()
      const before = keys.get(key)
      const { counted, kept } = hit(before ?? [], windows, now)
      if (before && (kept === before || endOf(kept) === endOf(before))) keys.set(key, kept)
      else if (kept.length > 0) begin(key, kept, now)
      return counted
    },
  }
}
