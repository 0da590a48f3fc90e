import { existsSync } from 'node:fs'
import type { StatementSync } from 'node:sqlite'
import type { Counted, CountWindow } from '@svc/core/contracts'
import { createCounts, type FileCounts } from './counts.ts'
import { beginAnew, type CountsFile, countsFile, hasCounts, openCounts, PROBE } from './counts-file.ts'
import { readError, tooManyWrites } from './errors.ts'
import { type Identity, identityOf, isThere } from './identity.ts'
import { isBusy, isDamage } from './file-errors.ts'

/** Counts hits on the calling thread. Hits of one turn of the event loop share a transaction. */
export interface Counter {
  count(key: string, windows: readonly CountWindow[], signal: AbortSignal): Promise<Counted>
  /** Writes a probe if anything was ever counted. Returns when the counts began anew after damage, in Unix milliseconds. */
  probe(signal: AbortSignal): Promise<number | undefined>
  /** Settles all calls and closes the file. */
  close(): Promise<void>
}
/** Options of a counter. */
export interface CounterOptions {
  /** The store whose counts these are. */
  readonly path: string
  readonly busyMs: number
  /** Maximum number of keys. */
  readonly most: number
  /** Receives the error of a hit, and returns it. */
  readonly failed: <T>(error: T) => T
  /** Checkpoints the log of this file on another thread, because that waits for the disk. */
  readonly settle: (file: string) => void
  /** A new file was begun instead of a damaged one. */
  readonly anew: (since: number) => void
}

interface Open extends CountsFile {
  readonly counts: FileCounts
  readonly identity: Identity | undefined
  readonly s: Record<'begin' | 'commit' | 'probe', StatementSync>
}
type Act<T> = (open: Open) => T
interface Waiting {
  readonly act: Act<unknown>
  readonly signal: AbortSignal
  readonly until: number
  readonly settle: PromiseWithResolvers<unknown>
}

const MAX_WAITING = 50_000
/** Maximum number of hits in one transaction: a few milliseconds of the event loop. */
const GROUP = 1000
const RETRY_MS = 1

/** Creates a counter; opens nothing yet. */
export function createCounter(options: CounterOptions): Counter {
  const { path, busyMs, failed } = options
  const keeper = createKeeper(options)
  let waiting: Waiting[] = []
  let closing = false
  let idle: (() => void) | undefined

  const attempt = (group: readonly Waiting[]): readonly Waiting[] => {
    try {
      const answers = keeper.transact(group.map(({ act }) => act))
      group.forEach(({ settle }, at) => settle.resolve(answers[at]))
      return []
    } catch (error) {
      const goesOn = ({ until }: Waiting) => isBusy(error) && !closing && performance.now() < until
      const failure = isBusy(error) && group.every(goesOn) ? undefined : failed(readError(error, keeper.file()))
      for (const item of group) if (!goesOn(item)) item.settle.reject(failure)
      return group.filter(goesOn)
    }
  }
  // Without SQLite's busy handler, which would block the event loop and starves one of two writers: each retries by itself.
  const flush = () => {
    const asked = waiting.filter(stillAsks)
    const again = asked.length > 0 ? attempt(asked.slice(0, GROUP)) : []
    waiting = [...again, ...asked.slice(GROUP)]
    if (again.length > 0) setTimeout(flush, RETRY_MS)
    else if (waiting.length > 0) setImmediate(flush)
    else idle?.()
  }
  const ask = <T>(act: Act<T>, signal: AbortSignal): Promise<T> => {
    if (waiting.length >= MAX_WAITING) throw tooManyWrites()
    const settle = Promise.withResolvers<unknown>()
    if (waiting.push({ act, signal, until: performance.now() + busyMs, settle }) === 1) setImmediate(flush)
    return settle.promise as Promise<T>
  }
  return {
    count: async (key, windows, signal) => ask(({ counts }) => counts.count(key, windows), signal),
    async probe(signal) {
      if (!hasCounts(path)) return undefined
      return ask(({ s, anewSince }) => (s.probe.run(), anewSince), signal)
    },
    async close() {
      closing = true
      if (waiting.length > 0) await new Promise<void>(resolve => (idle = resolve))
      keeper.close()
    },
  }
}

/** Skips hits whose callers have given up. */
function stillAsks({ signal, settle }: Waiting): boolean {
  if (signal.aborted) settle.reject(signal.reason)
  return !signal.aborted
}

/** Holds the open file until it fails or another file replaces it. */
interface Keeper {
  /** Counts all in one transaction. Throws SQLite's errors. */
  transact(acts: readonly Act<unknown>[]): unknown[]
  file(): string
  close(): void
}

/** How soon it notices that the file was replaced or removed, in milliseconds. */
const LOOK_MS = 50
/** Rows after which the log is checkpointed: at most 4 MiB. */
const SETTLE_ROWS = 1000

function createKeeper({ path, most, settle, anew }: CounterOptions): Keeper {
  let open: Open | undefined
  let looked = 0
  let rows = 0

  const close = () => {
    const { db } = open ?? {}
    open = undefined
    db?.close()
  }
  const giveUp = () => {
    try {
      close()
    } catch {
      // A broken file may not even close; it is given up nevertheless.
    }
  }
  const get = (): Open => {
    if (open && performance.now() - looked > LOOK_MS && !isOurs(open, path)) giveUp()
    if (!open || performance.now() - looked > LOOK_MS) looked = performance.now()
    if (open) return open
    open = prepared(openCounts(path), most)
    if (open.anewSince !== undefined) anew(open.anewSince)
    return open
  }
  const once = (acts: readonly Act<unknown>[]): unknown[] => {
    const found = get()
    try {
      const done = transaction(found, acts)
      rows += done.rows
      if (rows >= SETTLE_ROWS) {
        rows = 0
        settle(found.file)
      }
      return done.answers
    } catch (error) {
      if (!isBusy(error)) giveUp()
      if (isDamage(error)) beginAnew(path, found.number)
      throw error
    }
  }
  return {
    transact(acts) {
      try {
        return once(acts)
      } catch (error) {
        if (!isDamage(error)) throw error
        return once(acts)
      }
    },
    file: () => open?.file ?? countsFile(path),
    close,
  }
}

const isOurs = ({ identity, file, number }: Open, path: string) =>
  identity !== undefined && isThere(identity, file) && !existsSync(countsFile(path, number + 1))

function prepared(file: CountsFile, most: number): Open {
  const { db } = file
  const s = {
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    probe: db.prepare(PROBE),
  }
  return { ...file, counts: createCounts(db, most), identity: identityOf(file.file), s }
}

/** Also returns the number of written rows. */
function transaction(open: Open, acts: readonly Act<unknown>[]): { readonly answers: unknown[]; readonly rows: number } {
  const { db, s, counts } = open
  s.begin.run()
  try {
    const answers = acts.map(act => act(open))
    const rows = counts.flush()
    s.commit.run()
    return { answers, rows }
  } catch (error) {
    counts.drop()
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}
