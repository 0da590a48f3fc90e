import { basename } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { Space } from '@svc/core/contracts'
import { type Batches, type BatchContext, canFailHalfway, createBatches } from './batch.ts'
import { declareSpace, loadCatalog } from './catalog.ts'
import { identityOf, openForWriting } from './file.ts'
import { createHoldings, type Holdings } from './holdings.ts'
import { isBusy, isTrouble, Refusal, wordsFor } from './trouble.ts'
import type { Answer, Answered, FromWriter, Job, Refused } from './wire.ts'

/** What the writer's thread does with the file: groups of jobs, one commit each. */
export interface Session {
  /** Does the jobs in one transaction. Throws only when the file is busy: then nothing of it is done. */
  run(jobs: readonly Job[]): Pick<FromWriter, 'watched' | 'generation'> & { readonly answers: readonly Answered[] }
  close(): void
}

interface Connection {
  readonly db: DatabaseSync
  readonly identity: string | undefined
  readonly batches: Batches
  readonly holdings: Holdings
  readonly s: Record<'begin' | 'commit' | 'save' | 'keep' | 'version' | 'catalog' | 'probe' | 'trim' | 'forget', StatementSync>
  isFull: boolean
  seen?: unknown
  seenCatalog?: unknown
}

const TRIM_MS = 60 * 60_000

/** Opens the file when it is first needed, and again after trouble. */
export function createSession(path: string, first: readonly Space[]): Session {
  const context: BatchContext = {
    catalog: { spaces: new Map(), collections: new Map(), logs: new Map() },
    spaces: new Map(first.map(s => [s.name, s])),
  }
  let connection: Connection | undefined
  let generation = 0
  let trimmed = 0

  const close = () => {
    const { db } = connection ?? {}
    connection = undefined
    db?.close()
  }
  const connect = (): Connection => {
    const identity = identityOf(path)
    if (connection && connection.identity === identity) return connection
    if (connection) abandon()
    if (generation > 0 && identity === undefined) throw gone()
    connection = openConnection(path, context)
    generation++
    return connection
  }
  const abandon = () => {
    try {
      close()
    } catch {
      // A broken file may not even close; the connection is given up all the same.
    }
  }
  const refresh = (c: Connection) => {
    const version = first1(c.s.version)
    if (version === c.seen) return
    const catalog = first1(c.s.catalog)
    if (catalog !== c.seenCatalog) context.catalog = loadCatalog(c.db)
    c.seen = version
    c.seenCatalog = catalog
  }
  const transact = (jobs: readonly Job[], full: boolean): Answered[] => {
    const c = connect()
    if (c.isFull !== full) c.db.exec(`PRAGMA synchronous = ${full ? 'FULL' : 'NORMAL'}`)
    c.isFull = full
    c.s.begin.run()
    try {
      refresh(c)
      if (full && Date.now() - trimmed > TRIM_MS) trim(c, (trimmed = Date.now()))
      const answers = jobs.map(job => answer(c, context, job))
      if (full || !c.holdings.takeMustSync()) {
        c.s.commit.run()
        c.holdings.takeMustSync()
        return answers
      }
    } catch (error) {
      rollBack(c)
      throw error
    }
    // A new block of fences, which has to be synced: once more, with that.
    rollBack(c)
    return transact(jobs, true)
  }
  const attempt = (jobs: readonly Job[]): Answered[] => {
    try {
      return transact(jobs, jobs.some(isDurable))
    } catch (error) {
      if (isBusy(error)) throw error
      if (error instanceof Refusal) return jobs.map(() => error.refused)
      // What is no trouble with the file is one job's own: the others must not suffer from it.
      if (!isTrouble(error) && jobs.length > 1) return jobs.flatMap(job => attempt([job]))
      abandon()
      return jobs.map(() => unavailable(error, path))
    }
  }
  return {
    run(jobs) {
      const answers = attempt(jobs)
      return { answers, watched: connection?.batches.takeWatched() ?? false, generation }
    },
    close,
  }
}

const first1 = (statement: StatementSync) => Object.values(statement.get() ?? {})[0]

const gone = () =>
  new Refusal('STORE_UNAVAILABLE', 'the store file is gone', 'put it back; or start the server again to begin with an empty one')

function unavailable(error: unknown, path: string): Refused {
  const [reason, mend] = wordsFor(error, basename(path))
  return { code: 'STORE_UNAVAILABLE', args: [reason, mend, error instanceof Error ? error.message : String(error)] }
}

function openConnection(path: string, context: BatchContext): Connection {
  const db = openForWriting(path)
  const s = {
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    save: db.prepare('SAVEPOINT job'),
    keep: db.prepare('RELEASE job'),
    version: db.prepare('PRAGMA data_version'),
    catalog: db.prepare("SELECT value FROM counters WHERE name = 'catalog'"),
    probe: db.prepare("UPDATE counters SET value = value + 1 WHERE name = 'probe' RETURNING value"),
    trim: db.prepare('DELETE FROM feed WHERE gone = 1 AND at < ?'),
    forget: db.prepare(
      "UPDATE counters SET value = max(value, coalesce((SELECT max(seq) FROM feed WHERE gone = 1 AND at < ?), 0)) WHERE name = 'forgotten'"
    ),
  }
  return { db, identity: identityOf(path), batches: createBatches(db, context), holdings: createHoldings(db), s, isFull: true }
}

function rollBack(c: Connection): void {
  // What was read of the catalog may have been the transaction's own.
  c.seen = c.seenCatalog = undefined
  c.batches.takeWatched()
  if (c.db.isTransaction) c.db.exec('ROLLBACK')
}

/** Forgets deletions that every watcher has had an hour to hear of. */
function trim(c: Connection, now: number): void {
  c.s.forget.run(now - TRIM_MS)
  c.s.trim.run(now - TRIM_MS)
}

const isDurable = (job: Job) => job[0] === 'batch' || job[0] === 'open' || job[0] === 'probe'

function answer(c: Connection, context: BatchContext, job: Job): Answered {
  const savepoint = job[0] === 'open' || (job[0] === 'batch' && canFailHalfway(job[1]))
  if (savepoint) c.s.save.run()
  try {
    const done = act(c, context, job)
    if (savepoint) c.s.keep.run()
    return done
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    if (savepoint) c.db.exec('ROLLBACK TO job; RELEASE job')
    return error.refused
  }
}

function act(c: Connection, context: BatchContext, job: Job): Answer {
  switch (job[0]) {
    case 'batch':
      if (job[2]) c.holdings.check(job[2], job[3])
      return doBatch(c, context, job[1])
    case 'acquire':
      return c.holdings.acquire(job[1], job[2], job[3])
    case 'renew':
      return c.holdings.renew(job[1], job[2], job[3])
    case 'release':
      return c.holdings.release(job[1], job[2])
    case 'releaseHolder':
      return c.holdings.releaseHolder(job[1])
    case 'open':
      return open(c, context, JSON.parse(job[1]) as Space)
    case 'probe':
      return [Number(first1(c.s.probe))]
  }
}

function doBatch(c: Connection, context: BatchContext, ops: Extract<Job, readonly ['batch', ...unknown[]]>[1]): Answer {
  const results = c.batches.run(ops)
  if (ops.some(op => op[0] === 'migrated')) reload(c, context)
  return results
}

function open(c: Connection, context: BatchContext, space: Space): Answer {
  const stored = declareSpace(c.db, space)
  context.spaces.set(space.name, space)
  reload(c, context)
  return [stored]
}

function reload(c: Connection, context: BatchContext): void {
  context.catalog = loadCatalog(c.db)
  c.seenCatalog = first1(c.s.catalog)
}
