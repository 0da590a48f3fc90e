import type { CallContext } from '@svc/core'
import type { Counts, Fence, Postgres, Store, StoreAdmin, StoreOp, TextIndex } from '@svc/core/contracts'
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
  storeUnavailable,
} from '@svc/storage-kit'
import { createCounter } from './counter.ts'
import { storeError } from './errors.ts'
import type { WireOp } from './group.ts'
import { createDatabase } from './database.ts'
import { HalfOpenWatch } from './half-open.ts'
import { createLine, type Line, type Session, type Target } from './line.ts'
import { createListener } from './listener.ts'
import { createReader, type Reader } from './reader.ts'
import { repairRestored } from './restored.ts'
import { prepareSchema, quoted, requireSchema } from './schema.ts'
import { createWatches } from './watch.ts'
import { createWriter, type Writer } from './writer.ts'

export interface PostgresOptions {
  /** Where reads and writes go: PostgreSQL, or a pooler. */
  readonly target: Target
  /** PostgreSQL itself, for notifications and migrations. Default: `target`. */
  readonly direct?: Target
  readonly schema?: string
  /** Connections for reads. Default 2. */
  readonly readers?: number
  /** Milliseconds that a call waits for a connection. Default 5000. */
  readonly waitMs?: number
  /** Whether the first call may create the tables. Default true. */
  readonly mayMake?: boolean
}

/** A store in PostgreSQL. Its disposal settles all writes and closes the connections. */
export interface PostgresStore extends Store, Counts, TextIndex, StoreAdmin, Postgres, AsyncDisposable {
  /** Connects, and creates or checks the tables. */
  start(): Promise<Session>
}

/** Connections of a worker beside those for reads: one each for writes, counts, notifications and the queue. */
export const OTHER_LINES = 4
export const READERS = 2
const SCHEMA = 'svc'
const WAIT_MS = 5000
/** How long calls that wait may take to end when the store closes. The network can be silent. */
const CLOSE_MS = 4_000

/** Creates a store; the first call connects. */
export function createPostgresStore(options: PostgresOptions): PostgresStore {
  const { target, direct = target, schema = SCHEMA, waitMs = WAIT_MS, mayMake = true } = options
  const catalog = createCatalog()
  const { reader, writer, watches, counter, listener, line, apart, close } = createParts(options)
  let started: Promise<Session> | undefined
  let closed = false

  const start = () => {
    started ??= begin(direct, schema, { waitMs, mayMake }).catch((error: unknown) => {
      started = undefined
      throw error
    })
    return started
  }
  const enter = async ({ signal }: CallContext) => {
    signal.throwIfAborted()
    if (closed) throw storeClosed()
    await start()
    signal.throwIfAborted()
  }
  const leases = createLeases(writer, reader, enter)

  return {
    start,
    ...createData({ catalog, reader, writer, enter }),
    ...leases.contract,
    ...createDatabase({ line, listener, apart, schema, mayMake, enter }),
    async open(space, ctx) {
      await enter(ctx)
      catalog.check(space)
      const version = await writer.open(space)
      catalog.declare(space)
      return { version }
    },
    async count(key, windows, ctx) {
      checkCount(key, windows)
      await enter(ctx)
      return counter.count(key, windows, ctx.signal)
    },
    watch(collection, ctx) {
      catalog.collection(collection)
      if (closed) throw storeClosed()
      return watches.watch(collection, ctx.signal)
    },
    async probe(ctx) {
      await enter(ctx)
      return probe(reader, writer, schema, ctx)
    },
    async contents(ctx) {
      await enter(ctx)
      return contents(reader, schema)
    },
    async [Symbol.asyncDispose]() {
      if (closed) return
      closed = true
      leases.close()
      await close()
    },
  }
}

function createParts({ target, direct = target, schema = SCHEMA, readers = READERS, waitMs = WAIT_MS }: PostgresOptions) {
  const watch = new HalfOpenWatch(direct)
  const lines: Line[] = []
  const lineTo = (to: Target, role: string) => {
    const line = createLine({ ...to, applicationName: `${to.applicationName} ${role}` }, watch)
    lines.push(line)
    return line
  }
  const reader = createReader(
    Array.from({ length: readers }, () => lineTo(target, 'read')),
    schema,
    waitMs
  )
  const line = lineTo(direct, 'listen')
  const apart = lineTo(direct, 'queue')
  const listener = createListener(line)
  const watches = createWatches({ reader, listener, line, schema })
  const limits = { schema, waitMs, statementMs: target.statementMs }
  const writer = createWriter({ ...limits, line: lineTo(target, 'write'), committed: () => watches.committed() })
  const counter = createCounter({ ...limits, line: lineTo(target, 'count') })
  const close = async () => {
    const timer = setTimeout(() => lines.forEach(one => one.abort()), CLOSE_MS)
    await watches.close()
    await Promise.all([listener, apart, counter, writer, reader].map(part => part.close()))
    clearTimeout(timer)
    watch.close()
  }
  return { reader, watches, writer, listener, line, apart, counter, close }
}

/** Creates, or checks and repairs, the tables through a connection of its own. */
async function begin(
  direct: Target,
  schema: string,
  { waitMs, mayMake }: { readonly waitMs: number; readonly mayMake: boolean }
): Promise<Session> {
  const line = createLine({ ...direct, applicationName: `${direct.applicationName} start` })
  try {
    const session = await line.session(waitMs)
    if (session.standby || !mayMake) await requireSchema(line, schema)
    else await prepareSchema(line, schema)
    if (!session.standby) await repairRestored(line, schema)
    return session
  } catch (error) {
    throw storeError(error)
  } finally {
    await line.close()
  }
}

async function probe(reader: Reader, writer: Writer, schema: string, { signal }: CallContext) {
  const facts = async () => {
    const before = Date.now()
    const { rows } = await reader.ask({
      name: 'facts',
      text: `SELECT pg_is_in_recovery() AS standby, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
        current_setting('fsync') = 'on' AND current_setting('synchronous_commit') <> 'off' AS durable,
        (SELECT value FROM ${quoted(schema)}.meta WHERE name = 'probe') AS probed`,
    })
    return { row: rows[0]!, clockOffsetMs: clockOffset(Number(rows[0]!.now), before, Date.now()) }
  }
  const first = await facts()
  const base = { kind: 'postgres', durable: first.row.durable === true, scope: 'cluster' } as const
  if (first.row.standby === true) return { ...base, role: 'replica', clockOffsetMs: first.clockOffsetMs } as const
  await writer.send({ kind: 'probe' }, signal)
  const { row, clockOffsetMs } = await facts()
  if (Number(row.probed) <= Number(first.row.probed))
    throw storeUnavailable('the store does not show what was written', 'Name the primary in store.url, not a standby')
  return { ...base, role: 'primary', clockOffsetMs } as const
}

async function contents(reader: Reader, schema: string) {
  const size = await reader.ask(
    {
      text: `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint AS bytes FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`,
    },
    [schema]
  )
  const { rows } = await reader.ask({ text: `SELECT name, version FROM ${quoted(schema)}.spaces ORDER BY name` })
  return {
    bytes: Number(size.rows[0]!.bytes),
    spaces: rows.map(row => ({ name: String(row.name), version: Number(row.version) })),
  }
}

/** The leases of the store. */
interface Leases {
  readonly contract: Pick<Store, 'acquire' | 'renew' | 'release' | 'releaseHolder'>
  /** Ends all waiting. */
  close(): void
}

/** Maximum interval between two checks of a lease that another process holds. */
const LONGEST_LOOK_MS = 100

function createLeases(writer: Writer, reader: Reader, enter: (ctx: CallContext) => Promise<void>): Leases {
  const queue = createLeaseQueue({
    async attempt(lease, { holder, ttlMs }, looks) {
      // A caller that waits for another process only reads.
      const busyMs = looks > 0 ? await reader.busyMs(lease) : 0
      if (busyMs > 0) return { busyMs }
      const [fence, last] = await writer.send({ kind: 'acquire', lease, holder, ttlMs })
      return fence === 0 ? { busyMs: last! } : { lease, fence: fence!, expiresAt: last! }
    },
    release: lease => release(lease),
    lookAgain: looks => Math.min(LONGEST_LOOK_MS, 2 ** looks),
  })
  const release = async ({ lease, fence }: Fence) => {
    await writer.send({ kind: 'release', lease, fence })
    queue.freed(lease)
  }
  const contract: Leases['contract'] = {
    async acquire(lease, request, ctx) {
      checkLease(lease, request.ttlMs, request.waitMs, request.holder)
      await enter(ctx)
      return queue.acquire(lease, request, ctx)
    },
    async renew({ lease, fence }, ttlMs, ctx) {
      checkLease(lease, ttlMs)
      await enter(ctx)
      const [, expiresAt] = await writer.send({ kind: 'renew', lease, fence, ttlMs }, ctx.signal)
      return { lease, fence, expiresAt: expiresAt!, validMs: ttlMs }
    },
    async release(lease, ctx) {
      await enter(ctx)
      await release(lease)
    },
    async releaseHolder(prefix, ctx) {
      await enter(ctx)
      await writer.send({ kind: 'releaseHolder', prefix })
      queue.freed()
    },
  }
  return { contract, close: () => queue.close() }
}

/** The reads and writes of the store. */
type Data = Pick<Store, 'get' | 'range' | 'read' | 'batch'> & TextIndex

interface DataOptions {
  readonly catalog: Catalog
  readonly reader: Reader
  readonly writer: Writer
  /** Rejects calls after an abort or the close; connects at first. */
  readonly enter: (ctx: CallContext) => Promise<void>
}

function createData({ catalog, reader, writer, enter }: DataOptions): Data {
  return {
    async get(collection, key, ctx) {
      await enter(ctx)
      catalog.collection(collection)
      return reader.get(collection, key)
    },
    async range(collection, query, ctx) {
      await enter(ctx)
      const { paths, span } = checkRange(collection, query, catalog)
      return reader.range(collection, paths, span, { reverse: query.reverse ?? false, limit: query.limit })
    },
    async search(collection, query, ctx) {
      await enter(ctx)
      return reader.search(collection, checkSearch(collection, query, catalog), query.limit)
    },
    async read(log, id, query, ctx) {
      await enter(ctx)
      checkRead(log, id, query, catalog)
      return reader.read(log, id, query)
    },
    async batch(ops, { fence }, ctx) {
      // taken now: the caller may change its values after the call
      const [wire, bytes] = toWire(ops)
      await enter(ctx)
      checkOps(ops, catalog)
      const results = await writer.send({ kind: 'batch', ops: wire, fence, bytes }, ctx.signal)
      return { results: [...results] }
    },
  }
}

/** The operations with their values as JSON text, and the number of characters. */
function toWire(ops: readonly StoreOp[]): readonly [WireOp[], number] {
  let sum = 0
  const text = (value: unknown) => {
    const json = stringify(value)
    checkSize(json.length, (sum += json.length))
    return json
  }
  const wire = ops.map((op): WireOp => {
    if (op.op === 'put')
      return { op: 'put', collection: op.collection, key: op.key, text: text(op.value), ...given('ifVersion', op.ifVersion) }
    if (op.op === 'append')
      return { op: 'append', log: op.log, id: op.id, texts: op.values.map(text), ...given('ifLength', op.ifLength) }
    return op
  })
  return [wire, sum]
}

const given = <K extends string>(name: K, value: number | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { readonly [key in K]?: number }

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
