import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { asSvcError, type CallContext, codeOf, type SvcError } from '@svc/core'
import type { Counts, Fence, Space, Store, StoreAdmin, StoreOp, TextIndex } from '@svc/core/contracts'
import {
  type Catalog,
  checkCount,
  checkLease,
  checkOps,
  checkRange,
  checkRead,
  checkSearch,
  checkSize,
  clockOffset,
  createCatalog,
  createLeaseQueue,
  storeClosed,
  storeInvalid,
  storeNewer,
  storeUnavailable,
} from '@svc/storage-kit'
import { isDeclared } from '@svc/storage-kit/stored-catalog'
import { BACKUP_KIND } from './backup-job.ts'
import { createCounter } from './counter.ts'
import { MOST_COUNTS } from './counts.ts'
import { type Identity, identityOf, isThere } from './identity.ts'
import { inspect } from './inspect.ts'
import { createLink, type Link } from './link.ts'
import { createReader, type Reader } from './reader.ts'
import { rowsOf, createTails, type Tails } from './rows.ts'
import { writeProbe } from './try-out.ts'
import { createWatches } from './watch.ts'
import { type WriterAnswer, UNASKED, type WireOp } from './wire.ts'

export interface SqliteOptions {
  /** The database file; it and its folder are created if missing. */
  readonly path: string
  /** Milliseconds to wait for a file that another program has locked. Default 10,000. */
  readonly busyMs?: number
  /** Maximum number of counted keys. Default one million. */
  readonly mostCounts?: number
  /** Whether the first call may create the file; later calls never do. Default true. */
  readonly mayMake?: boolean
  /** Called when the counts began anew after damage, in Unix milliseconds. */
  readonly countsAnew?: (since: number) => void
}

/** A store in a file. Its disposal settles all writes and closes the file. */
export interface SqliteStore extends Store, Counts, TextIndex, StoreAdmin, AsyncDisposable {
  /** When the counts began anew after damage, according to the last probe, in Unix milliseconds. */
  countsAnewSince(): number | undefined
}

/**
 * Opens a durable store: `await using store = createSqliteStore({ path: '/var/lib/svc/svc.db' })`. The first call reports
 * problems of the file.
 */
export function createSqliteStore(options: SqliteOptions): SqliteStore {
  const catalog = createCatalog()
  const { tails, condition, reader, watches, link, counter } = createParts(options)
  let anewSince: number | undefined
  let closed = false
  const enter = ({ signal }: CallContext) => {
    signal.throwIfAborted()
    if (closed) throw storeClosed()
  }
  const leases = createLeases(link, reader, enter)

  return {
    countsAnewSince: () => anewSince,
    ...createData({ catalog, reader, link, tails, enter }),
    ...leases.contract,
    async open(space, ctx) {
      enter(ctx)
      catalog.check(space)
      const version = await declare(space, reader, link)
      catalog.declare(space)
      return { version }
    },
    async count(key, windows, ctx) {
      enter(ctx)
      checkCount(key, windows)
      return counter.count(key, windows, ctx.signal)
    },
    watch(collection, ctx) {
      catalog.collection(collection)
      if (closed) throw storeClosed()
      return watches.watch(collection, ctx.signal)
    },
    async probe(ctx) {
      enter(ctx)
      const durable = await probe(options.path, { link, reader }, ctx.signal)
      const [before, clock] = [Date.now(), await reader.reading(reads => reads.clock(), ctx.signal)]
      const clockOffsetMs = clockOffset(clock, before, Date.now())
      anewSince = await counter.probe(ctx.signal)
      await condition.check()
      return { kind: 'sqlite', durable, scope: 'machine', role: 'primary', clockOffsetMs }
    },
    async contents(ctx) {
      enter(ctx)
      const spaces = await reader.reading(reads => reads.spaces(), ctx.signal)
      return { bytes: sizeOf(options.path) + sizeOf(`${options.path}-wal`), spaces, backup: BACKUP_KIND }
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

const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0

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
      // The next read shall look for the writer's problem, too.
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

/** Whether a write with data waits for the disk. */
async function probe(
  path: string,
  { link, reader }: { readonly link: Link; readonly reader: Reader },
  signal: AbortSignal
): Promise<boolean> {
  const [written, synced] = (link.isRunning() ? undefined : await probed(path)) ?? (await link.send(['probe'], signal))
  const read = await reader.reading(reads => reads.probed(), signal)
  if (read < written!) throw storeUnavailable('the store does not show what was written', 'Restart the server')
  return synced! >= FULL
}

/** A start waits for its first health check, and starting the writer's thread for it would take a fifth of the start. */
async function probed(path: string) {
  await setImmediate() // a caller that probes repeatedly must let others run
  try {
    return writeProbe(path)
  } catch {
    return undefined // busy or failing: the writer waits and reports the error
  }
}

/** Needs the writer only if the file lacks part of the space. */
async function declare(space: Space, reader: Reader, link: Link): Promise<number> {
  const stored = await reader.catalog()
  const version = stored?.spaces.get(space.name) ?? 0
  if (version > space.version) throw storeNewer(`the space "${space.name}"`, version, space.version)
  if (stored && isDeclared(stored, space)) {
    link.remember(space)
    return version
  }
  const [before] = await link.send(['open', JSON.stringify(space)])
  // after its answer: a starting writer declares the remembered spaces, and would report that the space exists
  link.remember(space)
  await reader.catalog()
  return before!
}

/** A condition of the file that lasts until someone fixes it, although small writes such as a probe still work. */
interface Condition {
  /** Records the error of a call if it is such a condition; returns the error. */
  note<T>(error: T): T
  /** Throws the recorded error, unless the problem was fixed. */
  check(): Promise<void>
}

interface Noted {
  readonly error: SvcError
  readonly identity: Identity | undefined
}

/** How often a damaged file is checked again. */
const LOOK_MS = 30_000
/** A disk with less free space counts as full. */
const ROOM = 256 * 1024

/** Creates the record of a file's condition, empty at first. */
function createCondition(path: string): Condition {
  let noted: Noted | undefined
  let looked: { readonly at: number; readonly file: string | undefined } | undefined

  const isWhole = async () => {
    const file = identityOf(path)?.file
    // a late call may have recorded the replacement of the damaged file
    if (looked && looked.file === file && performance.now() - looked.at < LOOK_MS) return false
    looked = { at: performance.now(), file }
    return (await inspect(path)).problem === undefined
  }
  const isFixed = async ({ error, identity }: Noted) => {
    if (identity && !isThere(identity, path)) return true
    return error.details.lasting === 'full' ? hasRoom(path) : isWhole()
  }
  return {
    note(error) {
      const problem = asSvcError(error, 'STORE_UNAVAILABLE')
      if (problem.details.lasting !== undefined) noted = { error: problem, identity: identityOf(path) }
      return error
    },
    async check() {
      const then = noted
      if (!then) return
      if (!(await isFixed(then))) throw then.error
      if (noted === then) noted = undefined
    },
  }
}

function hasRoom(path: string): boolean {
  const { bavail, bfree, bsize } = statfsSync(dirname(path))
  return (process.getuid?.() === 0 ? bfree : bavail) * bsize >= ROOM
}

/** The leases of the store. */
interface Leases {
  readonly contract: Pick<Store, 'acquire' | 'renew' | 'release' | 'releaseHolder'>
  /** Ends all waiting. */
  close(): void
}

/** Maximum interval between two checks of a lease that another process holds. */
const LONGEST_LOOK_MS = 50

/** Creates the leases over the writer's thread; `enter` rejects calls after the close. */
function createLeases(link: Link, reader: Reader, enter: (ctx: CallContext) => void): Leases {
  const queue = createLeaseQueue({
    async attempt(lease, { holder, ttlMs }, looks) {
      // A caller that waits for another process only reads, so as not to take the write lock for nothing.
      const busyMs = looks > 0 ? await reader.reading(reads => reads.busyMs(lease)) : 0
      if (busyMs > 0) return { busyMs }
      const [fence, last] = await link.send(['acquire', lease, holder, ttlMs])
      return fence === 0 ? { busyMs: last! } : { lease, fence: fence!, expiresAt: last! }
    },
    release: lease => release(lease),
    lookAgain: looks => Math.min(LONGEST_LOOK_MS, 2 ** looks),
  })
  const release = async ({ lease, fence }: Fence) => {
    await link.send(['release', lease, fence])
    queue.freed(lease)
  }
  const contract: Leases['contract'] = {
    async acquire(lease, request, ctx) {
      enter(ctx)
      checkLease(lease, request.ttlMs, request.waitMs, request.holder)
      return queue.acquire(lease, request, ctx)
    },
    async renew({ lease, fence }, ttlMs, ctx) {
      enter(ctx)
      checkLease(lease, ttlMs)
      const [, expiresAt] = await link.send(['renew', lease, fence, ttlMs], ctx.signal)
      return { lease, fence, expiresAt: expiresAt!, validMs: ttlMs }
    },
    async release(lease, ctx) {
      enter(ctx)
      await release(lease)
    },
    async releaseHolder(holderPrefix, ctx) {
      enter(ctx)
      await link.send(['releaseHolder', holderPrefix])
      queue.freed()
    },
  }
  return { contract, close: () => queue.close() }
}

/** The reads and writes of the store. */
type Data = Pick<Store, 'get' | 'range' | 'read' | 'batch'> & TextIndex

/** Shared parts of a store. */
interface DataOptions {
  readonly catalog: Catalog
  readonly reader: Reader
  readonly link: Link
  readonly tails: Tails
  /** Rejects calls after an abort or the close. */
  readonly enter: (ctx: CallContext) => void
}

/** Reads through the reader, writes through the writer's thread. */
function createData({ catalog, reader, link, tails, enter }: DataOptions): Data {
  return {
    async get(collection, key, ctx) {
      enter(ctx)
      catalog.collection(collection)
      return reader.reading(reads => reads.get(collection, key), ctx.signal)
    },
    async range(collection, query, ctx) {
      enter(ctx)
      const { paths, span } = checkRange(collection, query, catalog)
      return reader.reading(reads => reads.range(collection, paths, span, query.reverse ?? false, query.limit), ctx.signal)
    },
    async search(collection, query, ctx) {
      enter(ctx)
      const search = checkSearch(collection, query, catalog)
      return reader.reading(reads => reads.search(collection, search, query.limit), ctx.signal)
    },
    async read(log, id, query, ctx) {
      enter(ctx)
      checkRead(log, id, query, catalog)
      return reader.reading(reads => reads.read(log, id, query), ctx.signal)
    },
    async batch(ops, { fence }, ctx) {
      enter(ctx)
      checkOps(ops, catalog)
      const wire = toWire(ops)
      const answer = await link.send(['batch', wire, fence?.lease ?? '', fence?.fence ?? 0], ctx.signal)
      remember(tails, wire, answer)
      return { results: answer.slice(0, ops.length) }
    },
  }
}

/** The operations with their values as JSON text. */
function toWire(ops: readonly StoreOp[]): WireOp[] {
  let sum = 0
  const text = (value: unknown) => {
    const json = stringify(value)
    checkSize(json.length, (sum += json.length))
    return json
  }
  return ops.map((op): WireOp => {
    if (op.op === 'put') return ['put', op.collection, op.key, text(op.value), op.ifVersion ?? UNASKED]
    if (op.op === 'append') return ['append', op.log, op.id, op.ifLength ?? UNASKED, rowsOf(op.values.map(text))]
    if (op.op === 'delete') return ['delete', op.collection, op.key, op.ifVersion ?? UNASKED]
    return op.op === 'drop' ? ['drop', op.log, op.id] : ['migrated', op.space, op.version]
  })
}

/** After the results of the operations, the writer returns the stream of each append. */
function remember(tails: Tails, ops: readonly WireOp[], answer: WriterAnswer): void {
  let next = ops.length
  ops.forEach((op, at) => {
    if (op[0] === 'append' && op[4].length > 0) tails.wrote(answer[next++]!, answer[at]!, op[4])
  })
}

function stringify(value: unknown): string {
  try {
    const json = JSON.stringify(value) as string | undefined
    if (json !== undefined) return json
  } catch (error) {
    throw storeInvalid(
      `a value must be JSON: ${error instanceof RangeError ? 'it is nested too deeply' : 'it contains values that JSON cannot express'}`
    )
  }
  throw storeInvalid(`a value must be JSON, was of type ${typeof value}`)
}
