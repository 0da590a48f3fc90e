import { setImmediate } from 'node:timers/promises'
import { codeOf, type Use } from '@svc/core'
import type { Space, Store } from '@svc/core/contracts'
import { checkCount, createCatalog, storeClosed, storeNewer, storeUnavailable } from '@svc/storage-kit'
import { isDeclared } from './catalog.ts'
import { createCounter } from './counter.ts'
import { MOST_COUNTS } from './counts.ts'
import { createData } from './data.ts'
import { createCondition } from './condition.ts'
import { createLeases } from './leases.ts'
import { createLink, type Link } from './link.ts'
import { createReader, type Reader } from './reader.ts'
import { createTails } from './tails.ts'
import { writeProbe } from './try-out.ts'
import { createWatches } from './watch.ts'

export interface SqliteOptions {
  /** The database file; it and its folder are made when they are missing. */
  readonly path: string
  /** Milliseconds to wait for a file that another program has locked. Default 10,000. */
  readonly busyMs?: number
  /** Keys that are counted at the most. Default a million. */
  readonly mostCounts?: number
  /** Whether the file may be made at the first call; it is never made anew later. Default true. */
  readonly mayMake?: boolean
  /** The counts that are used now were begun anew after damage, Unix milliseconds. */
  readonly countsAnew?: (since: number) => void
}

/** A store in a file; disposing of it answers all writes and closes the file. */
export interface SqliteStore extends Store, AsyncDisposable {
  /** When the counts were begun anew after damage, as the last probe found it; Unix milliseconds. */
  countsAnewSince(): number | undefined
}

/** Opens a durable store: `await using store = createSqliteStore({ path: '/var/lib/svc/svc.db' })`. Trouble with the file comes with the first call. */
export function createSqliteStore(options: SqliteOptions): SqliteStore {
  const catalog = createCatalog()
  const { tails, condition, reader, watches, link, counter } = createParts(options)
  let anewSince: number | undefined
  let closed = false
  const enter = ({ signal }: Use) => {
    signal.throwIfAborted()
    if (closed) throw storeClosed()
  }
  const leases = createLeases(link, reader, enter)

  return {
    countsAnewSince: () => anewSince,
    ...createData({ catalog, reader, link, tails, enter }),
    ...leases.contract,
    async open(space, use) {
      enter(use)
      catalog.check(space)
      const version = await declare(space, reader, link)
      catalog.declare(space)
      return { version }
    },
    async count(key, windows, use) {
      enter(use)
      checkCount(key, windows)
      return counter.count(key, windows, use.signal)
    },
    watch(collection, use) {
      catalog.collection(collection)
      if (closed) throw storeClosed()
      return watches.watch(collection, use.signal)
    },
    async probe(use) {
      enter(use)
      const durable = await probe(options.path, { link, reader }, use.signal)
      anewSince = await counter.probe(use.signal)
      await condition.check()
      return { kind: 'sqlite', durable }
    },
    async [Symbol.asyncDispose]() {
      if (closed) return
      closed = true
      leases.close()
      watches.close()
      await counter.close()
      await link.close(() => reader.reset())
    },
  }
}

function createParts({ path, busyMs = 10_000, mostCounts = MOST_COUNTS, mayMake = true, countsAnew }: SqliteOptions) {
  const tails = createTails()
  const condition = createCondition(path)
  const failed = <T>(error: T) => condition.note(error)
  const reader = createReader({ path, busyMs, tails, failed })
  const watches = createWatches(reader)
  const link = createLink({
    path,
    busyMs,
    mayMake,
    reopened: () => reader.reset(),
    watched: () => watches.stir(),
    failed(error) {
      // What the writer met, the next read shall look for.
      if (codeOf(error) === 'STORE_UNAVAILABLE') reader.reset()
      return failed(error)
    },
  })
  const counter = createCounter({
    path,
    busyMs,
    most: mostCounts,
    failed,
    settle: file => link.settle(file),
    anew: since => countsAnew?.(since),
  })
  return { tails, condition, reader, watches, link, counter }
}

/** SQLite's `synchronous = FULL`: the commit waits for the disk. */
const FULL = 2

/** Whether this very write, as every one with data, waited for the disk. */
async function probe(
  path: string,
  { link, reader }: { readonly link: Link; readonly reader: Reader },
  signal: AbortSignal
): Promise<boolean> {
  const [written, synced] = (link.isRunning() ? undefined : await probed(path)) ?? (await link.send(['probe'], signal))
  const read = await reader.reading(reads => reads.probed(), signal)
  if (read < written!) throw storeUnavailable('the store does not show what was written', 'start the server again')
  return synced! >= FULL
}

/** Whoever starts the server waits for its first good health; starting the writer's thread for that takes a fifth of the start. */
async function probed(path: string) {
  await setImmediate() // a caller that probes again and again must let others go on
  try {
    return writeProbe(path)
  } catch {
    return undefined // busy, or in trouble: the writer waits, and says what it is
  }
}

/** Needs the writer only when the file does not have all of the space yet. */
async function declare(space: Space, reader: Reader, link: Link): Promise<number> {
  const stored = await reader.catalog()
  const version = stored?.spaces.get(space.name) ?? 0
  if (version > space.version) throw storeNewer(`the space "${space.name}"`, version, space.version)
  if (stored && isDeclared(stored, space)) {
    link.remember(space)
    return version
  }
  const [before] = await link.send(['open', JSON.stringify(space)])
  // after its answer: a writer that starts declares what is remembered, and would answer that it is there already
  link.remember(space)
  await reader.catalog()
  return before!
}
