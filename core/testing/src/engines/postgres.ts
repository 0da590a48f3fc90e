import { realpathSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TestCertificate } from '../certificate.ts'
import { clientFailed, engineFailed, engineStopped } from './errors.ts'
import { CREDENTIALS, engineProgram, freePort } from './programs.ts'
import { type RunningEngine, firstAnswer, runProgram, ServerProcess, textOf } from './server-process.ts'
import { engineFolder, writeEngineFile } from './work-folder.ts'

/** What `query` returns: a row has a value for each column. */
export type PostgresRow = Record<string, unknown>

export interface PostgresOptions {
  /** Settings of `postgresql.conf`, for example `{ max_connections: 20 }`. */
  readonly settings?: Readonly<Record<string, string | number | boolean>>
  /** Accepts TLS connections as well, with this certificate. */
  readonly certificate?: TestCertificate
}

export interface StandbyOptions {
  /** Settings of the standby beside those of the primary, for example `{ recovery_min_apply_delay: '2s' }`. */
  readonly settings?: PostgresOptions['settings']
  /** Follows the primary through this proxy. */
  readonly via?: { readonly port: number }
  /** The primary answers a commit when this standby has written it. */
  readonly synchronous?: boolean
}

/** The superuser of a test. */
export interface PostgresLogin {
  readonly user: string
  /** A random text. */
  readonly password: string
}

/** A PostgreSQL server with an empty database `postgres`. */
export interface Postgres extends RunningEngine, PostgresLogin {
  /**
   * Runs one statement on a new connection and returns its rows: `query('select $1::int as n', [1])`. Needs the package `pg`.
   * Without values, the text can be several statements. Fails after 30 s.
   */
  query<T extends PostgresRow = PostgresRow>(sql: string, values?: readonly unknown[]): Promise<T[]>
  /** Copies this server to a standby that follows it, and returns when it does. */
  standby(options?: StandbyOptions): Promise<PostgresStandby>
  /**
   * Brings a stopped or killed primary back as a standby of the server that has taken its place, on the same port and with a new
   * copy of its data. Returns when it follows: it answers queries, and rejects writes with 25006.
   */
  demote(primary: Postgres): Promise<void>
}

/** A hot standby: it answers queries, and accepts writes after `promote`. */
export interface PostgresStandby extends Postgres {
  /** Ends the recovery and returns when the server accepts writes. The old primary keeps running. */
  promote(): Promise<void>
}

const NAME = 'PostgreSQL'
const WAIT_MS = 30_000

/** Messages and the sort order are those of every machine; no socket file, because its path is limited to 107 bytes. */
const SETTINGS = { listen_addresses: '127.0.0.1', unix_socket_directories: '', lc_messages: 'C', wal_keep_size: '256MB' }

/**
 * Starts a PostgreSQL server on a free port, with its data in a temporary folder. It writes as in production: `fsync` and
 * `synchronous_commit` are on. Throws ENGINE_MISSING where PostgreSQL is not installed.
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const folder = engineFolder('postgres')
  const data = join(folder, 'data')
  await copyCluster(await emptyCluster(), data)
  if (options.certificate) {
    writeEngineFile(data, 'server.crt', options.certificate.cert)
    writeEngineFile(data, 'server.key', options.certificate.key)
  }
  const server = new PostgresServer(folder, await freePort(), { ...options.settings, ssl: options.certificate !== undefined })
  await server.open()
  return server
}

/** A program of the same version as the server; PATH can contain a link to the server alone. */
const program = (name: string) => join(dirname(realpathSync(engineProgram('postgres'))), name)

let made: Promise<string> | undefined
/** `initdb` takes half a second, a copy of its result a tenth of that. */
function emptyCluster(): Promise<string> {
  made ??= initialize().catch(error => {
    made = undefined
    throw error
  })
  return made
}

async function initialize(): Promise<string> {
  const initdb = program('initdb')
  const folder = engineFolder('initdb')
  const password = writeEngineFile(folder, 'password', CREDENTIALS.password)
  const data = join(folder, 'data')
  const how = ['--auth=scram-sha-256', `--pwfile=${password}`, '--no-sync', '--no-locale', '--encoding=UTF8']
  await runProgram(initdb, ['-D', data, '-U', CREDENTIALS.user, ...how], { name: NAME, folder })
  return data
}

const copyCluster = (from: string, to: string) => runProgram('cp', ['-R', '-p', from, to], { name: NAME, folder: dirname(to) })

export const postgresUrl = (port: number) => `postgres://${CREDENTIALS.user}:${CREDENTIALS.password}@127.0.0.1:${port}/postgres`

class PostgresServer implements PostgresStandby {
  readonly port: number
  readonly url: string
  readonly user = CREDENTIALS.user
  readonly password = CREDENTIALS.password
  readonly #process: ServerProcess
  readonly #folder: string
  readonly #settings: Readonly<Record<string, string | number | boolean>>
  /** Synchronous standbys, by application_name. */
  readonly #synchronous: string[] = []

  constructor(folder: string, port: number, settings: Readonly<Record<string, string | number | boolean>>) {
    this.port = port
    this.url = postgresUrl(port)
    this.#folder = folder
    this.#settings = settings
    const words = Object.entries({ ...SETTINGS, ...settings, port }).flatMap(([key, value]) => ['-c', `${key}=${value}`])
    this.#process = new ServerProcess({
      name: NAME,
      folder,
      port,
      command: [program('postgres'), '-D', this.#data, ...words],
      isReady: () => acceptsSessions(port),
      stopSignal: 'SIGINT', // "fast": rolls open transactions back
      endSignal: 'QUIT', // frees the shared memory, unlike SIGKILL
      release: () => this.#freeSharedMemory(),
    })
  }

  get #data(): string {
    return join(this.#folder, 'data')
  }

  start(): Promise<void> {
    return this.#process.start()
  }

  open(): Promise<void> {
    return this.#process.open()
  }

  stop(): Promise<void> {
    return this.#process.stop()
  }

  kill(): Promise<void> {
    return this.#process.kill()
  }

  log(): Promise<string> {
    return this.#process.log()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]()
  }

  async query<T extends PostgresRow = PostgresRow>(sql: string, values?: readonly unknown[]): Promise<T[]> {
    return queryOnce(this.url, sql, values) as Promise<T[]>
  }

  async standby(options: StandbyOptions = {}): Promise<PostgresStandby> {
    const { synchronous = false, settings, via = this } = options
    if (!this.#process.isRunning) throw engineStopped(NAME)
    const [folder, port] = [engineFolder('standby'), await freePort()]
    const name = standbyName(port)
    await copyRunning(folder, name, via.port)
    const standby = new PostgresServer(folder, port, { ...this.#settings, ...settings })
    try {
      await standby.open()
      if (synchronous) await this.#waitForCommitsOf(name)
      await follows(this, name, synchronous ? 'sync' : 'async')
    } catch (error) {
      await standby[Symbol.asyncDispose]()
      throw error
    }
    return standby
  }

  async demote(primary: Postgres): Promise<void> {
    await this.stop()
    await this.#freeSharedMemory()
    await rm(this.#data, { recursive: true, force: true })
    const name = standbyName(this.port)
    await copyRunning(this.#folder, name, primary.port)
    await this.start()
    await follows(primary, name, 'async')
  }

  async promote(): Promise<void> {
    if (!this.#process.isRunning) throw engineStopped(NAME)
    const args = ['promote', '-w', '-t', String(WAIT_MS / 1000), '-D', this.#data]
    await runProgram(program('pg_ctl'), args, { name: NAME, folder: this.#folder })
  }

  /** A killed server leaves a segment of 56 bytes behind, of which a machine can have 4096. Line 7 of its file has the id. */
  async #freeSharedMemory(): Promise<void> {
    const [, id] = /^\s*(\d+)\s+(\d+)$/.exec(textOf(join(this.#data, 'postmaster.pid')).split('\n')[6] ?? '')?.slice(1) ?? []
    if (id !== undefined) await runProgram('ipcrm', ['-m', id], { name: NAME, folder: this.#folder })
  }

  async #waitForCommitsOf(name: string): Promise<void> {
    this.#synchronous.push(name)
    const names = `FIRST ${this.#synchronous.length} (${this.#synchronous.join(', ')})`
    await this.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`)
    await this.query('SELECT pg_reload_conf()')
  }
}

const standbyName = (port: number) => `standby_${port}`

/** Copies a running server to the folder of a standby with this name. */
async function copyRunning(folder: string, name: string, port: number): Promise<void> {
  const source = `host=127.0.0.1 port=${port} user=${CREDENTIALS.user} application_name=${name}`
  const how = ['--wal-method=stream', '--checkpoint=fast', '--write-recovery-conf', '--no-sync']
  const env = { PGPASSWORD: CREDENTIALS.password }
  await runProgram(program('pg_basebackup'), ['-D', join(folder, 'data'), '-d', source, ...how], { name: NAME, folder, env })
  forgetStandbys(join(folder, 'data', 'postgresql.auto.conf'))
}

/** Returns when a standby follows a primary. */
async function follows(primary: Postgres, name: string, state: 'sync' | 'async'): Promise<void> {
  const sql = `SELECT sync_state FROM pg_stat_replication WHERE application_name = $1 AND state = 'streaming'`
  const end = performance.now() + WAIT_MS
  for (;;) {
    const [row] = await primary.query(sql, [name])
    if (row?.sync_state === state) return
    if (performance.now() > end) throw engineFailed(NAME, `has no ${state} standby ${name}`, await primary.log())
    await sleep(10)
  }
}

/** The copy of a primary must not wait for the synchronous standbys of its original when it is promoted. */
function forgetStandbys(file: string): void {
  const lines = textOf(file).split('\n')
  writeFileSync(file, lines.filter(line => !line.startsWith('synchronous_standby_names')).join('\n'))
}

/** Asks for a session; the server answers "authenticate" (R) when it accepts sessions, and an error while it starts. */
async function acceptsSessions(port: number): Promise<boolean> {
  const words = Buffer.from(`user\0${CREDENTIALS.user}\0database\0postgres\0\0`)
  const head = Buffer.alloc(8)
  head.writeInt32BE(head.length + words.length)
  head.writeInt32BE(3 << 16, 4) // protocol 3.0
  return (await firstAnswer(port, Buffer.concat([head, words]))).startsWith('R')
}

interface Client {
  connect(): Promise<unknown>
  query(sql: string, values?: unknown[]): Promise<{ rows: PostgresRow[] } | { rows: PostgresRow[] }[]>
  on(event: 'error', heard: () => void): unknown
  end(): Promise<void>
}

/** Runs a statement on a connection of its own. The rows of the last one, where the text has several. */
export async function queryOnce(url: string, sql: string, values?: readonly unknown[]): Promise<PostgresRow[]> {
  // @ts-expect-error its types are a package of their own
  const pg = await import('pg').catch(clientFailed('pg'))
  const client: Client = new pg.default.Client({
    connectionString: url,
    connectionTimeoutMillis: WAIT_MS,
    query_timeout: WAIT_MS,
  })
  client.on('error', () => {}) // `query` reports it
  try {
    await client.connect()
    const result = await client.query(sql, values && [...values])
    return (Array.isArray(result) ? result.at(-1)!.rows : result.rows) as PostgresRow[]
  } finally {
    await client.end()
  }
}
