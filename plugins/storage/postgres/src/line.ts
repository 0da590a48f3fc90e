import { setTimeout as sleep } from 'node:timers/promises'
import type { SvcError } from '@svc/core'
import { storeClosed } from '@svc/storage-kit'
import {
  asksForPassword,
  isAfterwards,
  isLost,
  lacksTls,
  noteAttempt,
  noTls,
  passwordMissing,
  storeError,
  wrongServer,
} from './errors.ts'

/** A statement. One with a name is prepared once for each connection, unless a pooler stands between. */
export interface Statement {
  readonly name?: string
  readonly text: string
}
export type Row = Readonly<Record<string, unknown>>
export interface Result {
  readonly rows: readonly Row[]
  readonly rowCount: number | null
  readonly command: string
}
/** A statement with its values. */
export type Step = readonly [statement: Statement, values?: readonly unknown[]]

/** How to reach a server: the options of `pg`. */
export interface Target {
  /** Tried in order; the first that accepts writes is taken, else the first that answers. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[]
  readonly user?: string
  readonly database?: string
  readonly password?: string | (() => Promise<string>)
  /** The setting that has the password. */
  readonly passwordFrom?: string
  readonly ssl?: object | false
  readonly applicationName: string
  readonly connectMs: number
  readonly statementMs: number
}

interface Notification {
  readonly channel: string
  readonly payload?: string
}

/** The members of `pg.Client` in use; its types are a package of their own. */
interface Client {
  readonly processID: number | null
  /** Also those of the environment. */
  readonly user: string
  readonly database: string
  /** Also that of PGPASSWORD or `.pgpass`. */
  readonly password: unknown
  connect(): Promise<unknown>
  query(config: { name?: string; text: string; values?: unknown[] }): Promise<Result>
  on(event: 'error' | 'end', heard: () => void): void
  on(event: 'notification', heard: (message: Notification) => void): void
  off(event: 'error' | 'end', heard: () => void): void
  off(event: 'notification', heard: (message: Notification) => void): void
  end(): Promise<void>
  readonly connection: { readonly stream: { readonly bytesRead: number; destroy(): void } }
}

/** An open connection. */
export interface Session {
  readonly client: Client
  /** Host and port. */
  readonly server: string
  /** A pooler stands between: nothing may be left in the session. */
  readonly pooled: boolean
  /** The server is a standby. */
  readonly standby: boolean
  /** The number of connections the server allows, at the time of connecting. */
  readonly maxConnections: number
  /** When it was opened, by the monotonic clock. */
  readonly since: number
  lost: boolean
}

/** A connection that is replaced when it breaks. */
export interface Line {
  /** The open connection; opens one if there is none. Waits at most `waitMs`, trying again. Throws STORE_UNAVAILABLE. */
  session(waitMs?: number): Promise<Session>
  /** Sends all statements at once. Throws the error of `pg` of the first that failed. */
  run(steps: readonly Step[]): Promise<Result[]>
  one(statement: Statement, values?: readonly unknown[]): Promise<Result>
  /** The same outside of a transaction: the settings of a session hold for it behind a pooler, too. */
  alone(statement: Statement, values?: readonly unknown[]): Promise<Result>
  /** Gives the connection up: the next call opens another one. */
  drop(): void
  /** Fails at once what waits for an answer or a connection, and all further calls. */
  abort(): void
  readonly closed: boolean
  close(): Promise<void>
}

/** What is on its way through a line. */
interface Traffic {
  /** The process of PostgreSQL. */
  readonly pid: number
  /** Statements have no answer yet. */
  readonly isWaiting: boolean
  /** How long it has waited without a byte from the server. */
  readonly silentMs: number
}

/** A line, for a search for half-open connections. */
export interface WatchedLine extends Pick<Line, 'drop'> {
  /** Undefined without a connection, and for one through a pooler. */
  traffic(): Traffic | undefined
}

/** Watches lines that wait for answers. */
interface LineWatch {
  add(line: WatchedLine): void
  busy(): void
}

const KEEPALIVE_MS = 10_000
/** An answer that is later than the server's own limit will never come. */
const GRACE_MS = 3_000
/** How long a connection may take to end: one that is half open never answers. */
const END_MS = 2_000
/** How long a connection to a standby is used. */
const STANDBY_MS = 1_000
const OLDEST = 140_000
const [FIRST_MS, LONGEST_MS] = [20, 500]

/** Creates a line; connects with its first call. */
export const createLine = (target: Target, watch?: LineWatch): Line => new ReplacedLine(target, watch)

class ReplacedLine implements Line, WatchedLine {
  closed = false
  readonly #target: Target
  readonly #watch: LineWatch | undefined
  #current: Promise<Session> | undefined
  #open: Session | undefined
  #connecting: Client | undefined
  /** Calls that wait for answers. */
  #waiting = 0
  /** What the server has sent so far, and when that was seen to change. */
  #heard = { bytes: 0, at: 0 }

  constructor(target: Target, watch: LineWatch | undefined) {
    this.#target = target
    this.#watch = watch
    watch?.add(this)
  }

  traffic(): Traffic | undefined {
    const { client, pooled } = this.#open ?? {}
    if (!client || pooled) return undefined
    const [{ bytesRead }, now] = [client.connection.stream, performance.now()]
    if (this.#waiting === 0 || bytesRead !== this.#heard.bytes) this.#heard = { bytes: bytesRead, at: now }
    return { pid: client.processID ?? 0, isWaiting: this.#waiting > 0, silentMs: now - this.#heard.at }
  }

  async session(waitMs = 0): Promise<Session> {
    const until = performance.now() + waitMs
    for (let ms = FIRST_MS; ; ms = Math.min(ms * 2, LONGEST_MS)) {
      if (this.closed) throw storeClosed()
      try {
        return await this.#attempt()
      } catch (error) {
        if (performance.now() + ms > until || !isLost(error)) throw storeError(error)
      }
      await sleep(ms)
    }
  }

  async run(steps: readonly Step[]): Promise<Result[]> {
    const { client, pooled, server } = await this.session()
    const asked = steps.map(([{ name, text }, values]) =>
      client.query({ text, ...(name !== undefined && !pooled ? { name } : {}), ...(values ? { values: [...values] } : {}) })
    )
    if (this.#waiting++ === 0) this.#heard = { bytes: client.connection.stream.bytesRead, at: performance.now() }
    this.#watch?.busy()
    const answers = await Promise.allSettled(asked)
    this.#waiting--
    const errors = answers.flatMap(answer => (answer.status === 'rejected' ? [answer.reason as Error] : []))
    const error = errors.find(item => !isAfterwards(item)) ?? errors[0]
    if (error === undefined) return answers.map(answer => (answer as PromiseFulfilledResult<Result>).value)
    if (errors.some(isLost) && this.#open?.client === client) this.drop()
    noteAttempt(error, { server })
    throw error
  }

  async one(statement: Statement, values?: readonly unknown[]): Promise<Result> {
    return (await this.run([[statement, values]]))[0]!
  }

  async alone(statement: Statement, values?: readonly unknown[]): Promise<Result> {
    const { pooled } = await this.session()
    if (!pooled) return this.one(statement, values)
    const settings = { text: localSettings(this.#target.statementMs) }
    return (await this.run([[{ text: 'BEGIN' }], [settings], [statement, values], [{ text: 'COMMIT' }]]))[2]!
  }

  drop(): void {
    const former = this.#open
    this.#open = this.#current = undefined
    if (!former) return
    former.lost = true
    former.client.connection.stream.destroy()
  }

  abort(): void {
    this.closed = true
    this.drop()
    this.#connecting?.connection.stream.destroy()
  }

  async close(): Promise<void> {
    this.closed = true
    const former = this.#open
    this.#open = this.#current = undefined
    if (former && !former.lost) await endSession(former)
  }

  #attempt(): Promise<Session> {
    const former = this.#open
    // the primary can be another host by now
    if (former?.standby && performance.now() - former.since > STANDBY_MS) {
      this.#open = this.#current = undefined
      void endSession(former)
    }
    const attempted = (this.#current ??= this.#connect())
    attempted.catch(() => {
      if (this.#current === attempted) this.#current = undefined
    })
    return attempted
  }

  async #connect(): Promise<Session> {
    const session = await openSession(this.#target, client => {
      if (this.closed) throw storeClosed()
      this.#connecting = client
    }).finally(() => (this.#connecting = undefined))
    const gone = () => {
      session.lost = true
      if (this.#open === session) this.#open = this.#current = undefined
    }
    session.client.on('error', gone)
    session.client.on('end', gone)
    if (this.closed) {
      session.client.connection.stream.destroy()
      throw storeClosed()
    }
    this.#open = session
    return session
  }
}

/** Connects to the first host that accepts writes; to a standby if there is no other. `begins` gets the client of each attempt. */
async function openSession(target: Target, begins: (client: Client) => void): Promise<Session> {
  let spare: Session | undefined
  const failures: unknown[] = []
  for (const { host, port } of target.hosts) {
    try {
      const session = await connectTo(target, { host, port, begins })
      if (!session.standby) {
        spare?.client.connection.stream.destroy()
        return session
      }
      if (spare) session.client.connection.stream.destroy()
      else spare = session
    } catch (error) {
      failures.push(error)
    }
  }
  if (spare) return spare
  const [first] = failures
  const definite = failures.find(error => !isLost(error))
  if (definite === undefined)
    noteAttempt(first, { server: target.hosts.map(({ host, port }) => serverName(host, port)).join(', ') })
  throw definite ?? first
}

/** Statements that are on their way are answered before; they fail if that takes too long. */
async function endSession({ client }: Session): Promise<void> {
  const timer = setTimeout(() => client.connection.stream.destroy(), END_MS)
  await client.end().catch(() => {})
  clearTimeout(timer)
}

/** Host and port for people. */
const serverName = (host: string, port: number): string =>
  host.startsWith('/') ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`

const FACTS = `SELECT pg_backend_pid() AS pid, pg_is_in_recovery() AS standby, current_setting('server_version_num')::integer AS version,
  current_setting('server_encoding') AS encoding, current_setting('max_connections')::integer AS connections`
const INT8 = 20

/**
 * Plans must use the indexes from the first row on, when the tables have no statistics yet. In another schema of the search path, any
 * user of the database could put functions that fit our calls better than those of PostgreSQL.
 */
const settings = (statementMs: number, isLocal: boolean): string => {
  const all = Object.entries({
    search_path: 'pg_catalog, pg_temp',
    statement_timeout: statementMs,
    idle_in_transaction_session_timeout: statementMs,
    enable_seqscan: 'off',
    enable_hashjoin: 'off',
    enable_mergejoin: 'off',
    jit: 'off',
  })
  return `SELECT ${all.map(([name, value]) => `pg_catalog.set_config('${name}', '${value}', ${isLocal})`).join(', ')}`
}

/** The same for a transaction behind a pooler. */
export const localSettings = (statementMs: number): string => settings(statementMs, true)

interface Attempt {
  readonly host: string
  readonly port: number
  readonly begins: (client: Client) => void
}

async function connectTo(target: Target, { host, port, begins }: Attempt): Promise<Session> {
  // only a store in PostgreSQL loads it
  // @ts-expect-error its types are a package of their own
  const { default: pg } = (await import('pg')) as {
    default: { Client: new (options: object) => Client; types: { getTypeParser(oid: number, format?: string): unknown } }
  }
  const types = {
    getTypeParser: (oid: number, format?: string) => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format)),
  }
  const client = new pg.Client({
    host,
    port,
    user: target.user,
    database: target.database,
    password: target.password,
    ssl: target.ssl,
    application_name: target.applicationName,
    connectionTimeoutMillis: target.connectMs,
    query_timeout: target.statementMs + GRACE_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_MS,
    pipeline: true,
    types,
  })
  client.on('error', () => {}) // its statements report it
  try {
    begins(client)
    await client.connect()
    const facts = (await client.query({ text: FACTS })).rows[0]!
    const pooled = facts.pid !== client.processID
    const problem = problemOf(facts)
    if (problem) throw problem
    if (!pooled) await client.query({ text: settings(target.statementMs, false) })
    return {
      client,
      server: serverName(host, port),
      pooled,
      standby: facts.standby === true,
      maxConnections: Number(facts.connections),
      since: performance.now(),
      lost: false,
    }
  } catch (error) {
    client.connection.stream.destroy()
    throw failureOf(error, client, target, serverName(host, port))
  }
}

/** Why a connection could not be opened. */
function failureOf(error: unknown, { user, database, password }: Client, target: Target, server: string): unknown {
  const hasPassword = target.password !== undefined || (password ?? '') !== ''
  if (!hasPassword && asksForPassword(error)) return passwordMissing(server, error)
  if (lacksTls(error)) return noTls(server, error)
  const { passwordFrom } = target
  noteAttempt(error, { server, user, database, ...(passwordFrom === undefined ? {} : { passwordFrom }) })
  return error
}

function problemOf({ version, encoding }: Row): SvcError | undefined {
  if (Number(version) < OLDEST)
    return wrongServer(`PostgreSQL ${Math.floor(Number(version) / 10_000)} is too old`, 'Use PostgreSQL 14 or newer')
  if (encoding !== 'UTF8')
    return wrongServer(`the database has the encoding ${String(encoding)}`, 'Create the database with ENCODING UTF8')
  return undefined
}
