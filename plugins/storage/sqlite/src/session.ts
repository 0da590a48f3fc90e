import { basename } from 'node:path'
import type { Space } from '@svc/core/contracts'
import type { BatchContext } from './batch.ts'
import { loadFileCatalog } from '@svc/storage-kit/store-file'
import { declareSpace } from './catalog.ts'
import { type OpenFile, createConnections, firstOf } from './connection.ts'
import { isBusy, isDamage, isFileError, isSyncError, lastingOf, FileRefusal, wordsFor } from './file-errors.ts'
import type { WriterAnswer, WriterReply, Commit, WriterTask, Refused, WireOp, WriterData } from './wire.ts'

/** The result of a group of jobs. */
export interface GroupDone extends Commit {
  readonly answers: readonly WriterReply[]
}

/** The work of the writer's thread: groups of jobs, one commit each. */
export interface WriterSession {
  /** Performs the jobs in one transaction. Throws only if the file is busy; then nothing was done. */
  run(jobs: readonly WriterTask[]): GroupDone
  close(): void
}

/** How long deletions stay in the feed, and how often old ones are trimmed. */
const TRIM_MS = 60 * 60_000

/** Opens the file when it is first needed, and again after errors. */
export function createSession({ path, spaces, mayMake }: WriterData): WriterSession {
  const context: BatchContext = {
    catalog: { spaces: new Map(), collections: new Map(), logs: new Map() },
    spaces: new Map(spaces.map(space => [space.name, space])),
  }
  const connections = createConnections({ path, mayMake }, context)
  let trimmed = 0

  const transact = (jobs: readonly WriterTask[], full: boolean, saves = false): WriterReply[] => {
    const c = connections.get()
    begin(c, full)
    try {
      refresh(c, context)
      if (full && Date.now() - trimmed > TRIM_MS) trim(c, (trimmed = Date.now()))
      const answers = jobs.map(job => answer(c, context, job, saves))
      if (full || !c.leases.takeMustSync()) {
        commit(c)
        c.leases.takeMustSync()
        return answers
      }
    } catch (error) {
      rollBack(c)
      if (error instanceof Halfway) return transact(jobs, full, true)
      throw error
    }
    // A new block of fences must be synced: repeats the transaction with sync.
    rollBack(c)
    return transact(jobs, true, saves)
  }
  const attempt = (jobs: readonly WriterTask[]): WriterReply[] => {
    try {
      return transact(jobs, jobs.some(isDurable))
    } catch (error) {
      if (isBusy(error)) throw error
      if (error instanceof FileRefusal) return jobs.map(() => error.refused)
      // Errors that are not of the file belong to one job, and damage may concern only one job: the others run alone.
      if (!(error instanceof CommitUnsure) && (!isFileError(error) || isDamage(error)) && jobs.length > 1)
        return jobs.flatMap(job => attempt([job]))
      connections.abandon()
      return jobs.map(job =>
        error instanceof CommitUnsure && job[0] === 'batch' ? unsure(error, path) : unavailable(error, path)
      )
    }
  }
  return {
    run(jobs) {
      const answers = attempt(jobs)
      return { answers, watched: connections.current?.batches.takeWatched() ?? false, generation: connections.generation }
    },
    close: () => connections.close(),
  }
}

/** Only data waits for the disk: a power cut may lose a lease, because its holder is gone too. */
const isDurable = (job: WriterTask) => job[0] === 'batch' || job[0] === 'open' || job[0] === 'probe'

function unavailable(thrown: unknown, path: string): Refused {
  const error = thrown instanceof CommitUnsure ? thrown.cause : thrown
  const [reason, hint] = wordsFor(error, basename(path))
  return {
    code: 'STORE_UNAVAILABLE',
    args: [reason, hint, error instanceof Error ? error.message : String(error), lastingOf(error)],
  }
}

/** The disk failed to sync a commit: it can be there after a restart. */
class CommitUnsure extends Error {}

function commit(c: OpenFile): void {
  try {
    c.s.commit.run()
  } catch (error) {
    throw isSyncError(error) ? new CommitUnsure('', { cause: error }) : error
  }
}

function unsure({ cause }: CommitUnsure, path: string): Refused {
  return { code: 'STORE_UNSURE', args: [wordsFor(cause, basename(path))[0], String(cause)] }
}

function begin(c: OpenFile, full: boolean): void {
  if (c.isFull !== full) c.db.exec(`PRAGMA synchronous = ${full ? 'FULL' : 'NORMAL'}`)
  c.isFull = full
  c.s.begin.run()
}

function rollBack(c: OpenFile): void {
  // The catalog may have been read inside the transaction.
  c.seen = c.seenCatalog = undefined
  c.batches.takeWatched()
  if (c.db.isTransaction) c.db.exec('ROLLBACK')
}

/** Clears the caches after writes of other processes, and reloads the catalog if it changed. */
function refresh(c: OpenFile, context: BatchContext): void {
  const version = firstOf(c.s.version)
  if (version === c.seen) return
  forget(c)
  const catalog = firstOf(c.s.catalog)
  if (catalog !== c.seenCatalog) context.catalog = loadFileCatalog(c.db)
  c.seen = version
  c.seenCatalog = catalog
}

function forget(c: OpenFile): void {
  c.batches.forget()
  c.leases.forget()
}

function reload(c: OpenFile, context: BatchContext): void {
  // a new index contains records that were cached without it
  forget(c)
  context.catalog = loadFileCatalog(c.db)
  c.seenCatalog = firstOf(c.s.catalog)
}

/** Deletes deletions that every watcher has had an hour to read. */
function trim(c: OpenFile, now: number): void {
  c.s.forget.run(now - TRIM_MS)
  c.s.trim.run(now - TRIM_MS)
}

/** A job was refused after part of it: the group runs again, each job behind a savepoint. */
class Halfway extends Error {}

/** Only checks before the first operation can refuse with nothing to undo. */
const leavesNothing = ({ code, args }: Refused) =>
  code === 'STORE_CONFLICT' ? args[0] === 0 : code !== 'STORE_UNAVAILABLE' && code !== 'STORE_INVALID'

/**
 * Runs one job. Uses savepoints only if one is needed: behind a savepoint, SQLite copies each changed page, a third of the
 * writer's time.
 */
function answer(c: OpenFile, context: BatchContext, job: WriterTask, saves: boolean): WriterReply {
  const savepoint = saves || job[0] === 'open'
  if (savepoint) c.s.save.run()
  try {
    const done = act(c, context, job)
    if (savepoint) c.s.keep.run()
    return done
  } catch (error) {
    if (!(error instanceof FileRefusal)) throw error
    if (savepoint) undo(c)
    else if (!leavesNothing(error.refused)) throw new Halfway()
    return error.refused
  }
}

function undo(c: OpenFile): void {
  c.db.exec('ROLLBACK TO job; RELEASE job')
  forget(c)
}

function act(c: OpenFile, context: BatchContext, job: WriterTask): WriterAnswer {
  switch (job[0]) {
    case 'batch':
      if (job[2]) c.leases.check(job[2], job[3])
      return doBatch(c, context, job[1])
    case 'acquire':
      return c.leases.acquire(job[1], job[2], job[3])
    case 'renew':
      return c.leases.renew(job[1], job[2], job[3])
    case 'release':
      return c.leases.release(job[1], job[2])
    case 'releaseHolder':
      return c.leases.releaseHolder(job[1])
    case 'open':
      return open(c, context, JSON.parse(job[1]) as Space)
    case 'probe':
      return [Number(firstOf(c.s.probe)), Number(firstOf(c.s.synced))]
  }
}

function doBatch(c: OpenFile, context: BatchContext, ops: readonly WireOp[]): WriterAnswer {
  const results = c.batches.run(ops)
  if (ops.some(op => op[0] === 'migrated')) reload(c, context)
  return results
}

function open(c: OpenFile, context: BatchContext, space: Space): WriterAnswer {
  const stored = declareSpace(c.db, space)
  context.spaces.set(space.name, space)
  reload(c, context)
  return [stored]
}
