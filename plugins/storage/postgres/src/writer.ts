import { randomUUID } from 'node:crypto'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '@svc/core'
import type { Space } from '@svc/core/contracts'
import { storeClosed, storeUnsure } from '@svc/storage-kit'
import { isDeclared } from '@svc/storage-kit/stored-catalog'
import { declareSpace, loadCatalog, type StoredCatalog, versionOf } from './catalog.ts'
import { isLost, isReadOnly, isRepeated, readOnly, rolledBack, storeError, tooManyWaiting } from './errors.ts'
import { idsFor, needsOf, readFlight, writeFlight } from './flights.ts'
import { type Answer, type Call, evaluate, type GroupState } from './group.ts'
import { type Line, localSettings, type Session, type Statement, type Step } from './line.ts'
import { lockOf, quoted } from './schema.ts'

/** Writes through one connection: the calls that wait while a group is committed are the next group. */
export interface Writer {
  send(call: Call, signal?: AbortSignal): Promise<Answer>
  /** Declares a space; returns the version of its data before. */
  open(space: Space): Promise<number>
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

export const createWriter = (options: WriterOptions): Writer => new GroupWriter(options)

class GroupWriter implements Writer {
  readonly #options: WriterOptions
  readonly #spaces = new Map<string, Space>()
  readonly #transactions: Transactions
  #waiting: Waiting[] = []
  #last: Promise<unknown> = Promise.resolve()
  #isScheduled = false
  #isClosed = false

  constructor(options: WriterOptions) {
    this.#options = options
    this.#transactions = new Transactions(options, this.#spaces)
  }

  async send(call: Call, signal?: AbortSignal): Promise<Answer> {
    if (this.#isClosed) throw storeClosed()
    if (this.#waiting.length >= MOST_WAITING) throw tooManyWaiting()
    const settle = Promise.withResolvers<Answer>()
    this.#waiting.push({ call, signal, since: performance.now(), settle })
    if (!this.#isScheduled) {
      this.#isScheduled = true
      void this.#alone(() => this.#flush())
    }
    return settle.promise
  }

  open(space: Space): Promise<number> {
    return this.#alone(async () => {
      const before = await this.#opened(space)
      this.#spaces.set(space.name, structuredClone(space))
      return before
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#last
    await this.#transactions.end()
    await this.#options.line.close()
  }

  /** One after the other: a connection has one transaction. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => {})
    return result
  }

  async #flush(): Promise<void> {
    await setImmediate() // calls of the same turn share a transaction
    this.#isScheduled = false
    for (let group = this.#take(); group.length > 0; group = this.#take()) {
      const calls = group.map(({ call }) => call)
      const outcomes = await this.#attempt(calls, group[0]!.since)
      group.forEach(({ settle }, at) => {
        const outcome = outcomes[at]!
        if ('answer' in outcome) settle.resolve(outcome.answer)
        else settle.reject(outcome.error)
      })
    }
  }

  #take(): Waiting[] {
    this.#waiting = this.#waiting.filter(stillAsks)
    let [bytes, count] = [0, 0]
    for (const { call } of this.#waiting) {
      const size = call.kind === 'batch' ? call.bytes : 0
      // a migration changes the catalog, so it is a group of its own
      if (count > 0 && (count === GROUP || bytes + size > GROUP_BYTES || isMigration(call))) break
      bytes += size
      count++
      if (isMigration(call)) break
    }
    return this.#waiting.splice(0, count)
  }

  /** Runs the calls as often as other transactions and lost connections make it necessary. */
  async #attempt(calls: readonly Call[], since: number): Promise<readonly Outcome[]> {
    for (let tries = 1; ; tries++) {
      try {
        return this.#done(await this.#transactions.run(calls))
      } catch (error) {
        this.#transactions.forget()
        const ended = await this.#afterError(error, calls, { since, tries })
        if (ended) return ended
        await sleep(Math.random() * Math.min(2 ** tries, LONGEST_PAUSE_MS))
      }
    }
  }

  #done({ outcomes, watched }: GroupDone): readonly Outcome[] {
    if (watched) this.#options.committed()
    return outcomes
  }

  /** The outcomes, if the calls are not to be tried again. */
  async #afterError(
    error: unknown,
    calls: readonly Call[],
    { since, tries }: { readonly since: number; readonly tries: number }
  ): Promise<readonly Outcome[] | undefined> {
    const { line, waitMs } = this.#options
    if (error instanceof CommitLost) return this.#afterLoss(error)
    if (isLost(error)) {
      line.drop()
      const isOver = performance.now() - since > waitMs || isReadOnly(error)
      return isOver ? failed(calls, storeError(error)) : undefined
    }
    // there is no connection, or only one to a standby
    if (codeOf(error)?.startsWith('STORE_')) return failed(calls, error)
    if (isRepeated(error)) return tries < TRIES ? undefined : failed(calls, storeError(error))
    if (calls.length === 1) return failed(calls, storeError(error))
    // an error of one call: the others run without it
    const outcomes: Outcome[] = []
    for (const call of calls) outcomes.push(...(await this.#attempt([call], since)))
    return outcomes
  }

  async #afterLoss({ n, done }: CommitLost): Promise<readonly Outcome[] | undefined> {
    try {
      return (await this.#transactions.wasCommitted(n)) ? this.#done(done) : undefined
    } catch (cause) {
      const error = storeUnsure('the connection to PostgreSQL was lost', cause)
      // a call that was refused has changed nothing
      return done.outcomes.map(outcome => ('error' in outcome ? outcome : { error }))
    }
  }

  /** Declaring a space twice is the same as once. */
  async #opened(space: Space): Promise<number> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#transactions.open(space)
      } catch (error) {
        if (isLost(error)) this.#options.line.drop()
        if (tries === OPEN_TRIES || isReadOnly(error) || !(isLost(error) || isRepeated(error))) throw storeError(error)
      }
    }
  }
}

const failed = (calls: readonly Call[], error: unknown): Outcome[] => calls.map(() => ({ error }))

const isMigration = (call: Call) => call.kind === 'batch' && call.ops.some(op => op.op === 'migrated')

/** Skips calls whose callers have given up. */
function stillAsks({ signal, settle }: Waiting): boolean {
  if (signal?.aborted) settle.reject(signal.reason)
  return signal?.aborted !== true
}

/** The transactions of one connection. */
class Transactions {
  readonly #options: WriterOptions
  readonly #spaces: ReadonlyMap<string, Space>
  readonly #s: string
  readonly #ids: Ids
  /** The name of this writer in the table of marks. */
  readonly #id = randomUUID()
  #catalog: StoredCatalog | undefined
  #groups = 0

  constructor(options: WriterOptions, spaces: ReadonlyMap<string, Space>) {
    this.#options = options
    this.#spaces = spaces
    this.#s = quoted(options.schema)
    this.#ids = new Ids(options.line, this.#s)
  }

  forget(): void {
    this.#catalog = undefined
  }

  /** Runs the calls in one transaction. Throws errors of the connection and of the transaction. */
  async run(calls: readonly Call[]): Promise<GroupDone> {
    const session = await this.#primary()
    try {
      const state = await this.#read(calls, session)
      const outcomes = calls.map((call): Outcome => {
        try {
          return { answer: evaluate(call, state, this.#spaces) }
        } catch (error) {
          return { error }
        }
      })
      await this.#ids.reserve(idsFor(state))
      const { steps, watched } = writeFlight(this.#options.schema, state, this.#spaces, () => this.#ids.next())
      const done = { outcomes, watched }
      await this.#end(steps, done)
      if (state.migrations.length > 0) this.#catalog = undefined
      return done
    } catch (error) {
      return this.#failed(error)
    }
  }

  /**
   * Whether the group with this number was committed. Waits for the transaction of the old connection, which still holds the
   * row. Unlike an xid, which can be given again after a crash or a failover, the row is exact.
   */
  async wasCommitted(n: number): Promise<boolean> {
    const { line, waitMs } = this.#options
    const until = performance.now() + RESOLVE_MS
    for (;;) {
      const session = await line.session(waitMs)
      try {
        if (session.standby) throw readOnly()
        const results = await line.run([
          [{ text: 'BEGIN' }],
          ...this.#settings(session),
          [resolveMark(this.#s), [this.#id]],
          [{ text: 'COMMIT' }],
        ])
        return Number(results.at(-2)!.rows[0]!.n) === n
      } catch (error) {
        line.drop()
        if (performance.now() > until) throw error
        await sleep(LONGEST_PAUSE_MS)
      }
    }
  }

  /** Declares a space, if another process has not done it. Returns the version of its data before. */
  async open(space: Space): Promise<number> {
    const { line, schema, waitMs } = this.#options
    await line.session(waitMs)
    const found = await this.#stored()
    const stored = versionOf(found, space)
    this.#catalog = isDeclared(found, space) ? found : undefined
    if (this.#catalog) return stored
    const session = await this.#primary()
    try {
      await line.run(this.#beginning(session, true))
      const before = await declareSpace(line, schema, space)
      await line.one({ text: 'COMMIT' })
      return before
    } catch (error) {
      return this.#failed(error)
    }
  }

  /** Removes the mark of this writer, and those of writers that were killed long ago. */
  async end(): Promise<void> {
    if (this.#groups === 0) return
    const text = `DELETE FROM ${this.#s}.writers WHERE id = $1 OR at < now() - interval '7 days'`
    await this.#options.line.alone({ text }, [this.#id]).catch(() => {})
  }

  /** The catalog, read outside of a transaction. */
  #stored(): Promise<StoredCatalog> {
    const { line, schema } = this.#options
    return loadCatalog({ one: (statement, values) => line.alone(statement, values) }, schema)
  }

  #settings({ pooled }: Session): Step[] {
    return pooled ? [[{ text: localSettings(this.#options.statementMs) }]] : []
  }

  /** Writes wait while a space is declared or migrated, and that waits for writes. */
  #beginning(session: Session, exclusive: boolean): Step[] {
    const lock = `SELECT pg_advisory_xact_lock${exclusive ? '' : '_shared'}(${lockOf(this.#options.schema, 'catalog')})`
    return [
      [{ text: 'BEGIN' }],
      ...this.#settings(session),
      [{ name: exclusive ? 'lock' : 'lock_shared', text: lock }],
      [{ name: 'catalog_version', text: `SELECT value FROM ${this.#s}.meta WHERE name = 'catalog'` }],
    ]
  }

  async #primary(): Promise<Session> {
    const { line, waitMs } = this.#options
    const session = await line.session(waitMs)
    if (!session.standby) return session
    line.drop() // it may be promoted by the next call
    throw readOnly()
  }

  /** Locks and reads the rows of the calls. */
  async #read(calls: readonly Call[], session: Session): Promise<GroupState> {
    const { line, schema } = this.#options
    const flightFor = (catalog: StoredCatalog) => readFlight(schema, needsOf(calls, catalog), catalog)
    const known = (this.#catalog ??= await this.#stored())
    const head = this.#beginning(session, calls.some(isMigration))
    const flight = flightFor(known)
    const results = await line.run([...head, ...flight.steps])
    if (Number(results[head.length - 1]!.rows[0]?.value) === known.version) return flight.parse(results.slice(head.length))
    // another process has declared something; the lock keeps the catalog as it is now
    const again = flightFor((this.#catalog = await loadCatalog(line, schema)))
    return again.parse(await line.run(again.steps))
  }

  async #end(steps: readonly Step[], done: GroupDone): Promise<void> {
    const { line } = this.#options
    if (steps.length === 0) return void (await line.one({ text: 'ROLLBACK' }))
    const n = ++this.#groups
    try {
      const results = await line.run([...steps, [mark(this.#s), [this.#id, n]], [{ text: 'COMMIT' }]])
      if (results.at(-1)!.command !== 'COMMIT') throw rolledBack()
    } catch (error) {
      throw isLost(error) ? new CommitLost(n, done, error) : error
    }
  }

  async #failed(error: unknown): Promise<never> {
    const { line } = this.#options
    if (!isLost(error) && !(error instanceof CommitLost)) await line.one({ text: 'ROLLBACK' }).catch(() => line.drop())
    throw error
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

class Ids {
  readonly #line: Line
  readonly #s: string
  readonly #free: number[] = []

  constructor(line: Line, s: string) {
    this.#line = line
    this.#s = s
  }

  next(): number {
    return this.#free.shift()!
  }

  /** Makes sure that `count` ids are there. */
  async reserve(count: number): Promise<void> {
    if (this.#free.length >= count) return
    const { rows } = await this.#line.one(
      { name: 'ids', text: `SELECT nextval('${this.#s}.ids') AS id FROM generate_series(1, $1::integer)` },
      [Math.ceil(count / BLOCK)]
    )
    for (const row of rows) for (let at = 0; at < BLOCK; at++) this.#free.push(Number(row.id) + at)
  }
}
