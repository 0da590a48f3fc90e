import type { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { loadCatalog, type StoredCatalog } from './catalog.ts'
import { fileGone, readError } from './errors.ts'
import { openForReading } from './file.ts'
import { type Identity, identityOf, isThere, setAside } from './identity.ts'
import { createReads, type Reads } from './reads.ts'
import type { Tails } from './tails.ts'
import { isBusy, isFileError } from './file-errors.ts'

/** Reads on the calling thread, through a separate connection that no write blocks. */
export interface Reader {
  /** Runs reads on the open file; waits for locks, and reopens it after errors. Throws the errors of the contract. */
  reading<T>(read: (reads: Reads) => T, signal?: AbortSignal): Promise<T>
  /** The present catalog of the file; undefined if it does not exist yet. */
  catalog(): Promise<StoredCatalog | undefined>
  /** Reopens the file at the next read. */
  reset(): void
}

interface Open {
  readonly db: DatabaseSync
  readonly reads: Reads
  readonly identity: Identity | undefined
  catalog: StoredCatalog
}

/** Options of a reader. */
export interface ReaderOptions {
  readonly path: string
  readonly busyMs: number
  readonly tails: Tails
  /** Receives the error of a read, and returns it. */
  readonly failed: <T>(error: T) => T
}

const RETRY_MS = 2
/** How soon it notices that the file was removed or replaced, in milliseconds. */
const LOOK_MS = 50

/** Creates a reader; opens nothing yet. */
export function createReader({ path, busyMs, tails, failed }: ReaderOptions): Reader {
  const keeper = createKeeper(path, tails)

  const attempt = async <T>(work: () => T, signal?: AbortSignal): Promise<T> => {
    for (const until = Date.now() + busyMs; ; ) {
      try {
        return work()
      } catch (error) {
        if (isFileError(error) && !isBusy(error)) keeper.reset()
        if (!isBusy(error) || Date.now() >= until) throw failed(readError(error, path))
      }
      await setTimeout(RETRY_MS, undefined, signal ? { signal } : {})
    }
  }
  return {
    reading: (read, signal) =>
      attempt(() => {
        const connection = keeper.connect()
        if (!connection) throw fileGone(path)
        return read(connection.reads)
      }, signal),
    catalog: () =>
      attempt(() => {
        const connection = keeper.connect()
        if (connection) connection.catalog = loadCatalog(connection.db)
        return connection?.catalog
      }),
    reset: () => keeper.reset(),
  }
}

/** Holds the open file until it is given up or replaced. */
function createKeeper(path: string, tails: Tails): { connect(): Open | undefined; reset(): void } {
  let open: Open | undefined
  let former: Identity | undefined
  let opens = 0
  let looked = 0

  const reset = () => {
    const { db } = open ?? {}
    open = undefined
    tails.clear()
    try {
      db?.close()
    } catch {
      // A broken file may not even close; the connection is given up nevertheless.
    }
  }
  const opened = (db: DatabaseSync): Open => {
    const identity = (former = identityOf(path))
    const reads = createReads(db, tails, { catalog: () => fresh.catalog, file: `${identity?.file}`, version: ++opens })
    const fresh: Open = { db, identity, catalog: loadCatalog(db), reads }
    return fresh
  }
  const reopen = (): Open | undefined => {
    if (former) setAside(path, former)
    const db = openForReading(path)
    if (!db) return undefined
    try {
      return (open = opened(db))
    } catch (error) {
      db.close()
      throw error
    }
  }
  return {
    connect() {
      if (open && performance.now() - looked > LOOK_MS) {
        looked = performance.now()
        if (!open.identity || !isThere(open.identity, path)) reset()
      }
      return open ?? reopen()
    },
    reset,
  }
}
