import type { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { loadCatalog, type StoredCatalog } from './catalog.ts'
import { fileGone, readError } from './errors.ts'
import { openForReading } from './file.ts'
import { type Identity, identityOf, isThere, setAside } from './identity.ts'
import { createReads, type Reads } from './reads.ts'
import type { Tails } from './tails.ts'
import { isBusy, isFileError } from './file-errors.ts'

/** Reads on the calling thread, through a connection of their own that no write holds up. */
export interface Reader {
  /** Runs reads on the open file; waits while it is locked, opens it anew after trouble. Throws as the contract says. */
  reading<T>(read: (reads: Reads) => T, signal?: AbortSignal): Promise<T>
  /** The catalog as the file has it now; `undefined` when there is no file yet. */
  catalog(): Promise<StoredCatalog | undefined>
  /** Opens the file anew at the next read. */
  reset(): void
}

interface Open {
  readonly db: DatabaseSync
  readonly reads: Reads
  readonly identity: Identity | undefined
  catalog: StoredCatalog
}

/** What a reader is made of. */
export interface ReaderOptions {
  readonly path: string
  readonly busyMs: number
  readonly tails: Tails
  /** Hears what a read failed with, and gives it back. */
  readonly failed: <T>(error: T) => T
}

const RETRY_MS = 2
/** A file that is taken away or replaced is noticed within so many milliseconds. */
const LOOK_MS = 50

/** Makes a reader; opens nothing yet. */
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

/** Keeps the open file: until it is given up, or another one is in its place. */
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
      // A broken file may not even close; the connection is given up all the same.
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
