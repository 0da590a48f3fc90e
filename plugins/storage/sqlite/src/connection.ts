import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type Batches, type BatchContext, createBatches } from './batch.ts'
import { openForWriting } from './file.ts'
import { createLeaseTable, type LeaseTable } from './lease-table.ts'
import { type Identity, identityOf, isThere, setAside } from './identity.ts'
import type { WriterData } from './wire.ts'

/** The open file with its statements. */
export interface Connection {
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
export interface Connections {
  get(): Connection
  readonly current: Connection | undefined
  /** How often the file was opened. */
  readonly generation: number
  /** Gives up a broken connection. */
  abandon(): void
  close(): void
}

export type ConnectionOptions = Pick<WriterData, 'path' | 'mayMake'>

/** Creates the holder of the connection to a file. */
export function createConnections({ path, mayMake }: ConnectionOptions, context: BatchContext): Connections {
  let current: Connection | undefined
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

function open(path: string, context: BatchContext, options: { mayMake: boolean }): Connection {
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
