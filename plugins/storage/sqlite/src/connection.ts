import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type Batches, type BatchContext, createBatches } from './batch.ts'
import { openForWriting } from './file.ts'
import { type Identity, identityOf, isThere, setAside } from './identity.ts'
import type { WriterData, WriterAnswer } from './wire.ts'
import { RowCache } from './rows.ts'
import { FileRefusal } from './file-errors.ts'

/** The open file with its statements. */
export interface OpenFile {
  readonly db: DatabaseSync
  readonly identity: Identity | undefined
  readonly batches: Batches
  readonly leases: LeaseTable
  readonly s: Record<
    'begin' | 'commit' | 'save' | 'keep' | 'version' | 'catalog' | 'probe' | 'synced' | 'trim' | 'forget',
    StatementSync
  >
  /** Whether a commit waits for the disk. */
  isFull: boolean
  /** `data_version` and the catalog's counter when the catalog was read. */
  seen?: unknown
  seenCatalog?: unknown
}

/** Holds the connection: opens it when needed, and gives it up after errors or when the file was replaced. */
export interface ConnectionHolder {
  get(): OpenFile
  readonly current: OpenFile | undefined
  /** How often the file was opened. */
  readonly generation: number
  /** Gives up a broken connection. */
  abandon(): void
  close(): void
}

export type ConnectionOptions = Pick<WriterData, 'path' | 'mayMake'>

/** Creates the holder of the connection to a file. */
export function createConnections({ path, mayMake }: ConnectionOptions, context: BatchContext): ConnectionHolder {
  let current: OpenFile | undefined
  let former: Identity | undefined
  let generation = 0

  const close = () => {
    const { db } = current ?? {}
    current = undefined
    db?.close()
  }
  const abandon = () => {
    try {
      close()
    } catch {
      // A broken file may not even close; the connection is given up nevertheless.
    }
  }
  return {
    get current() {
      return current
    },
    get generation() {
      return generation
    },
    get() {
      if (current?.identity && isThere(current.identity, path)) return current
      abandon()
      if (former) setAside(path, former)
      const fresh = open(path, context, { mayMake: mayMake && generation === 0 })
      former = fresh.identity
      generation++
      return (current = fresh)
    },
    abandon,
    close,
  }
}

function open(path: string, context: BatchContext, options: { mayMake: boolean }): OpenFile {
  const db = openForWriting(path, options)
  const s = {
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    save: db.prepare('SAVEPOINT job'),
    keep: db.prepare('RELEASE job'),
    version: db.prepare('PRAGMA data_version'),
    catalog: db.prepare("SELECT value FROM counters WHERE name = 'catalog'"),
    probe: db.prepare("UPDATE counters SET value = value + 1 WHERE name = 'probe' RETURNING value"),
    synced: db.prepare('PRAGMA synchronous'),
    trim: db.prepare('DELETE FROM feed WHERE gone = 1 AND at < ?'),
    forget: db.prepare(
      "UPDATE counters SET value = max(value, coalesce((SELECT max(seq) FROM feed WHERE gone = 1 AND at < ?), 0)) WHERE name = 'forgotten'"
    ),
  }
  return {
    db,
    identity: identityOf(path),
    batches: createBatches(db, context),
    leases: createLeaseTable(db),
    s,
    isFull: true,
  }
}

/** The only column of the first row. */
export const firstOf = (statement: StatementSync): unknown => Object.values(statement.get() ?? {})[0]

/** The leases in the file, changed by the writer inside a transaction. */
interface LeaseTable {
  acquire(lease: string, holder: string, ttlMs: number): WriterAnswer
  renew(lease: string, fence: number, ttlMs: number): WriterAnswer
  release(lease: string, fence: number): WriterAnswer
  releaseHolder(prefix: string): WriterAnswer
  check(lease: string, fence: number): void
  /** Whether the transaction must be synced although only leases changed. */
  takeMustSync(): boolean
  /** Clears the cache: another process has written, or something was rolled back. */
  forget(): void
}

/** Size of a block of fences. */
const BLOCK = 1000
/** When an expired lease is deleted. Until then its holder can still write if no other holder came. */
const KEEP_MS = 24 * 60 * 60_000
/**
 * Prepares the statements of one connection. A lease is not synced, so a power cut can lose it with its fence. But no fence
 * reaches `fence_limit`, which is synced before, and each connection begins at the limit that it finds. So fences after a power
 * cut are higher than all before.
 */
function createLeaseTable(db: DatabaseSync): LeaseTable {
  const s = statements(db)
  // a holder writes again soon; 0: no holder
  const known = new RowCache<number>()
  let mustSync = false
  const nextFence = createFences(s, () => {
    mustSync = true
    known.clear()
  })
  const fenceOf = (lease: string) => known.get(lease) ?? known.keep(lease, Number(s.find.get(lease)?.fence ?? 0))
  return {
    acquire(lease, holder, ttlMs) {
      const now = Date.now()
      const there = s.find.get(lease)
      if (there && Number(there.expires) > now) return [0, Number(there.expires) - now]
      const fence = nextFence()
      s.hold.run(lease, holder, fence, now + ttlMs)
      known.keep(lease, fence)
      return [fence, now + ttlMs]
    },
    renew(lease, fence, ttlMs) {
      const now = Date.now()
      if (s.renew.run(now + ttlMs, lease, fence, now).changes === 0) throw new FileRefusal('STORE_FENCED', lease, fence)
      return [fence, now + ttlMs]
    },
    release(lease, fence) {
      s.release.run(lease, fence)
      known.delete(lease)
      return []
    },
    releaseHolder(prefix) {
      s.releaseHolder.run(prefix, prefix)
      known.clear()
      return []
    },
    check(lease, fence) {
      if (fenceOf(lease) !== fence) throw new FileRefusal('STORE_FENCED', lease, fence)
    },
    takeMustSync() {
      const was = mustSync
      mustSync = false
      return was
    },
    forget() {
      known.clear()
      nextFence.forget()
    },
  }
}

/** Returns increasing fences. `raised` is called when a new block begins and expired leases were deleted. */
function createFences(s: ReturnType<typeof statements>, raised: () => void) {
  let floor: number | undefined
  // as the file has them
  let [last, limit]: (number | undefined)[] = []
  const counter = (name: string) => Number(s.counter.get(name)!.value)
  const begin = (from: number) => {
    s.forget.run(Date.now() - KEEP_MS)
    raise(from + BLOCK)
    return from + 1
  }
  const raise = (to: number) => {
    s.setCounter.run((limit = to), 'fence_limit')
    raised()
  }
  const next = () => {
    floor ??= begin((limit ??= counter('fence_limit')))
    last = Math.max((last ?? counter('fence')) + 1, floor)
    s.setCounter.run(last, 'fence')
    if (last >= (limit ??= counter('fence_limit'))) raise(last + BLOCK)
    return last
  }
  const forget = () => {
    last = limit = undefined
  }
  return Object.assign(next, { forget })
}

const statements = (db: DatabaseSync) => ({
  counter: db.prepare('SELECT value FROM counters WHERE name = ?'),
  setCounter: db.prepare('UPDATE counters SET value = ? WHERE name = ?'),
  find: db.prepare('SELECT fence, expires FROM leases WHERE name = ?'),
  hold: db.prepare('INSERT OR REPLACE INTO leases(name, holder, fence, expires) VALUES (?, ?, ?, ?)'),
  renew: db.prepare('UPDATE leases SET expires = ? WHERE name = ? AND fence = ? AND expires > ?'),
  release: db.prepare('DELETE FROM leases WHERE name = ? AND fence = ?'),
  releaseHolder: db.prepare('DELETE FROM leases WHERE substr(holder, 1, length(?)) = ?'),
  forget: db.prepare('DELETE FROM leases WHERE expires < ?'),
})
