import { randomUUID } from 'node:crypto'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { Space } from '@svc/core/contracts'
import { storeClosed, storeUnsure } from '@svc/storage-kit'
import { declareSpace, isDeclared, loadCatalog, type StoredCatalog, versionOf } from './catalog.ts'
import { isLost, isReadOnly, isRepeated, readOnly, storeError, tooManyWaiting } from './errors.ts'
import { idsFor, needsOf, readFlight, writeFlight } from './flights.ts'
import { type Answer, type Call, evaluate } from './group.ts'
import { type Line, localSettings, type Session, type Statement, type Step } from './line.ts'
import { lockOf, quoted } from './schema.ts'

/** Writes through one connection: the calls that wait while a group is committed are the next group. */
export interface Writer {
  send(call: Call, signal?: AbortSignal): Promise<Answer>
  /** Declares a space; returns the version of its data before. */
  open(space: Space): Promise<number>
  /** The catalog that the last write saw. */
  readonly catalog: StoredCatalog | undefined
  /** Settles all calls. */
  close(): Promise<void>
}

export interface WriterOptions {
  readonly line: Line
  readonly schema: string
  /** How long calls wait for a connection. */
  readonly waitMs: number
  readonly statementMs: number
  /** Called after a commit that changed watched collections. */
  readonly committed: () => void
}

interface Waiting {
  readonly call: Call
  readonly signal: AbortSignal | undefined
  readonly since: number
  readonly settle: PromiseWithResolvers<Answer>
}
type Outcome = { readonly answer: Answer } | { readonly error: unknown }

const MOST_WAITING = 50_000
/** Calls and characters in one transaction. */
const GROUP = 1000
const GROUP_BYTES = 16 * 1024 * 1024
/** Tries of a group that other transactions thwart. */
const TRIES = 50
const OPEN_TRIES = 3
const LONGEST_PAUSE_MS = 50
/** How long an old connection can still commit, at most. */
const RESOLVE_MS = 15_000

/** The connection broke when the commit was on its way. */
class CommitLost extends Error {
  readonly n: number
  readonly done: GroupDone

  constructor(n: number, done: GroupDone, cause: unknown) {
    super('the connection was lost during a commit', { cause })
    this.n = n
    this.done = done
  }
}

/** The outcomes of a group's calls, if it is committed. */
interface GroupDone {
  readonly outcomes: readonly Outcome[]
  readonly watched: boolean
}

export function createWriter(options: WriterOptions): Writer {
  const { line, waitMs, committed } = options
  const spaces = new Map<string, Space>()
  const session = createTransactions(options, spaces)
  let waiting: Waiting[] = []
  let last: Promise<unknown> = Promise.resolve()
  let isScheduled = false
  let closed = false

  /** Runs the calls as often as other transactions and lost connections make it necessary. */
  const attempt = async (calls: readonly Call[], since: number): Promise<readonly Outcome[]> => {
    const all = (error: unknown) => calls.map((): Outcome => ({ error }))
    for (let tries = 1; ; tries++) {
      try {
        const done = await session.run(calls)
        if (done.watched) committed()
        return done.outcomes
      } catch (error) {
        session.forget()
        if (error instanceof CommitLost) {
          const found = await session.wasCommitted(error.n).catch((cause: unknown) => new Unresolved({ cause }))
          if (found instanceof Unresolved) return all(storeUnsure('the connection to PostgreSQL was lost', found.cause))
          if (found) {
            if (error.done.watched) committed()
            return error.done.outcomes
          }
        } else if (isLost(error)) {
          line.drop()
          if (performance.now() - since > waitMs || isReadOnly(error)) return all(storeError(error))
        } else if (!isRepeated(error)) {
          if (calls.length === 1) return all(storeError(error))
          // an error of one call: the others run without it
          const outcomes: Outcome[] = []
          for (const call of calls) outcomes.push(...(await attempt([call], since)))
          return outcomes
        } else if (tries >= TRIES) return all(storeError(error))
        await sleep(Math.random() * Math.min(2 ** tries, LONGEST_PAUSE_MS))
      }
    }
  }
  /** Declaring a space twice is the same as once. */
  const opened = async (space: Space): Promise<number> => {
    for (let tries = 1; ; tries++) {
      try {
        return await session.open(space)
      } catch (error) {
        if (isLost(error)) line.drop()
        if (tries === OPEN_TRIES || isReadOnly(error) || !(isLost(error) || isRepeated(error))) throw storeError(error)
      }
    }
  }
  /** One after the other: a connection has one transaction. */
  const alone = <T>(work: () => Promise<T>): Promise<T> => {
    const result = last.then(work)
    last = result.catch(() => {})
    return result
  }
  const flush = async () => {
    await setImmediate() // calls of the same turn share a transaction
    isScheduled = false
    for (let group = take(); group.length > 0; group = take()) {
      const outcomes = await attempt(
        group.map(({ call }) => call),
        group[0]!.since
      )
      group.forEach(({ settle }, at) => {
        const outcome = outcomes[at]!
        if ('answer' in outcome) settle.resolve(outcome.answer)
        else settle.reject(outcome.error)
      })
    }
  }
  const take = (): Waiting[] => {
    waiting = waiting.filter(stillAsks)
    let bytes = 0
    let count = 0
    for (const { call } of waiting) {
      const size = call.kind === 'batch' ? call.bytes : 0
      // a migration changes the catalog, so it is a group of its own
      if (count > 0 && (count === GROUP || bytes + size > GROUP_BYTES || isMigration(call))) break
      bytes += size
      count++
      if (isMigration(call)) break
    }
    return waiting.splice(0, count)
  }
  return {
    get catalog() {
      return session.catalog
    },
    async send(call, signal) {
      if (closed) throw storeClosed()
      if (waiting.length >= MOST_WAITING) throw tooManyWaiting()
      const settle = Promise.withResolvers<Answer>()
      waiting.push({ call, signal, since: performance.now(), settle })
      if (!isScheduled) {
        isScheduled = true
        void alone(flush)
      }
      return settle.promise
    },
    open: space =>
      alone(async () => {
        const before = await opened(space)
        spaces.set(space.name, structuredClone(space))
        return before
      }),
    async close() {
      closed = true
      await last
      await session.end()
      await line.close()
    },
  }
}

class Unresolved extends Error {
  constructor(options: ErrorOptions) {
    super('the end of a commit is unknown', options)
  }
}

const isMigration = (call: Call) => call.kind === 'batch' && call.ops.some(op => op.op === 'migrated')

/** Skips calls whose callers have given up. */
function stillAsks({ signal, settle }: Waiting): boolean {
  if (signal?.aborted) settle.reject(signal.reason)
  return signal?.aborted !== true
}

/** The transactions of one connection. */
function createTransactions({ line, schema, waitMs, statementMs }: WriterOptions, spaces: ReadonlyMap<string, Space>) {
  const s = quoted(schema)
  const ids = createIds(line, s)
  const id = randomUUID()
  let catalog: StoredCatalog | undefined
  let groups = 0

  const settings = ({ pooled }: Session): Step[] => (pooled ? [[{ text: localSettings(statementMs) }]] : [])
  /** Writes wait while a space is declared or migrated, and that waits for writes. */
  const beginning = (session: Session, exclusive: boolean): Step[] => [
    [{ text: 'BEGIN' }],
    ...settings(session),
    [
      {
        name: exclusive ? 'lock' : 'lock_shared',
        text: `SELECT pg_advisory_xact_lock${exclusive ? '' : '_shared'}(${lockOf(schema, 'catalog')})`,
      },
    ],
    [{ name: 'catalog_version', text: `SELECT value FROM ${s}.meta WHERE name = 'catalog'` }],
  ]
  const primary = async () => {
    const session = await line.session(waitMs)
    if (!session.standby) return session
    line.drop() // it may be promoted by the next call
    throw readOnly()
  }
  /** Locks and reads the rows of the calls. */
  const read = async (calls: readonly Call[], session: Session) => {
    catalog ??= await loadCatalog(line, schema)
    const head = beginning(session, calls.some(isMigration))
    let flight = readFlight(schema, needsOf(calls, catalog), catalog)
    const results = await line.run([...head, ...flight.steps])
    if (Number(results[head.length - 1]!.rows[0]?.value) === catalog.version) return flight.parse(results.slice(head.length))
    // another process has declared something; the lock keeps the catalog as it is now
    catalog = await loadCatalog(line, schema)
    flight = readFlight(schema, needsOf(calls, catalog), catalog)
    return flight.parse(await line.run(flight.steps))
  }
  const end = async (steps: readonly Step[], done: GroupDone) => {
    if (steps.length === 0) return void (await line.one({ text: 'ROLLBACK' }))
    const n = ++groups
    try {
      const results = await line.run([...steps, [mark(s), [id, n]], [{ text: 'COMMIT' }]])
      if (results.at(-1)!.command !== 'COMMIT') throw new Error('PostgreSQL has rolled the transaction back')
    } catch (error) {
      throw isLost(error) ? new CommitLost(n, done, error) : error
    }
  }
  const failed = async (error: unknown): Promise<never> => {
    if (!isLost(error) && !(error instanceof CommitLost)) await line.one({ text: 'ROLLBACK' }).catch(() => line.drop())
    throw error
  }
  return {
    get catalog() {
      return catalog
    },
    forget() {
      catalog = undefined
    },
    /** Runs the calls in one transaction. Throws errors of the connection and of the transaction. */
    async run(calls: readonly Call[]): Promise<GroupDone> {
      const session = await primary()
      try {
        const state = await read(calls, session)
        const outcomes = calls.map((call): Outcome => {
          try {
            return { answer: evaluate(call, state, spaces) }
          } catch (error) {
            return { error }
          }
        })
        await ids.reserve(idsFor(state))
        const { steps, watched } = writeFlight(schema, state, spaces, ids.next)
        const done = { outcomes, watched }
        await end(steps, done)
        if (state.migrations.length > 0) catalog = undefined
        return done
      } catch (error) {
        return failed(error)
      }
    },
    /**
     * Whether the group with this number was committed. Waits for the transaction of the old connection, which still holds the
     * row. Unlike an xid, which can be given again after a crash or a failover, the row is exact.
     */
    async wasCommitted(n: number): Promise<boolean> {
      for (let until = performance.now() + RESOLVE_MS; ; ) {
        try {
          const session = await line.session(waitMs).catch((cause: unknown) => {
            until = 0
            throw cause
          })
          if (session.standby) throw readOnly()
          const steps: Step[] = [[{ text: 'BEGIN' }], ...settings(session), [resolveMark(s), [id]], [{ text: 'COMMIT' }]]
          const results = await line.run(steps)
          return Number(results.at(-2)!.rows[0]!.n) === n
        } catch (error) {
          line.drop()
          if (performance.now() > until) throw error
          await sleep(LONGEST_PAUSE_MS)
        }
      }
    },
    /** Declares a space, if another process has not done it. */
    async open(space: Space): Promise<number> {
      await line.session(waitMs)
      const found = await loadCatalog(line, schema)
      if (isDeclared(found, space)) {
        catalog = found
        return versionOf(found, space)
      }
      versionOf(found, space)
      const session = await primary()
      catalog = undefined
      try {
        await line.run(beginning(session, true))
        const before = await declareSpace(line, schema, space)
        await line.one({ text: 'COMMIT' })
        return before
      } catch (error) {
        return failed(error)
      }
    },
    async end(): Promise<void> {
      if (groups > 0)
        await line.one({ text: `DELETE FROM ${s}.writers WHERE id = $1 OR at < now() - interval '7 days'` }, [id]).catch(() => {})
    },
  }
}

const mark = (s: string): Statement => ({
  name: 'mark',
  text: `INSERT INTO ${s}.writers VALUES ($1, $2, now()) ON CONFLICT (id) DO UPDATE SET n = excluded.n, at = excluded.at`,
})
const resolveMark = (s: string): Statement => ({
  text: `INSERT INTO ${s}.writers VALUES ($1, -1, now()) ON CONFLICT (id) DO UPDATE SET at = excluded.at RETURNING n`,
})

/** Ids in blocks: as large as the steps of the sequence. */
const BLOCK = 1000

function createIds(line: Line, s: string) {
  const free: number[] = []
  return {
    next: () => free.shift()!,
    /** Makes sure that `count` ids are there. */
    async reserve(count: number): Promise<void> {
      if (free.length >= count) return
      const blocks = Math.ceil(count / BLOCK)
      const { rows } = await line.one(
        { name: 'ids', text: `SELECT nextval('${s}.ids') AS id FROM generate_series(1, $1::integer)` },
        [blocks]
      )
      for (const row of rows) for (let at = 0; at < BLOCK; at++) free.push(Number(row.id) + at)
    },
  }
}
