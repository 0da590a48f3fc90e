import { CREDENTIALS, engineProgram, freePort } from './programs.ts'
import { type PostgresLogin, type PostgresRow, postgresUrl, queryOnce } from './postgres.ts'
import { type RunningEngine, firstAnswer, ServerProcess } from './server-process.ts'
import { engineFolder, writeEngineFile } from './work-folder.ts'

export interface PgBouncerOptions {
  /** When a connection to PostgreSQL returns to the pool; `transaction` unless set. */
  readonly poolMode?: 'session' | 'transaction' | 'statement'
  /** Other settings of `pgbouncer.ini`, for example `{ default_pool_size: 2 }`. */
  readonly settings?: Readonly<Record<string, string | number>>
}

/** A pooler with the database, user and password of its PostgreSQL. */
export interface PgBouncer extends RunningEngine, PostgresLogin {
  /** Runs one statement on a new connection through the pooler, and returns its rows. Needs the package `pg`. */
  query<T extends PostgresRow = PostgresRow>(sql: string, values?: readonly unknown[]): Promise<T[]>
}

/** After a failed login, PgBouncer rejects clients for 15 s. Tests that restart PostgreSQL wait for less. */
const SETTINGS = {
  default_pool_size: 10,
  max_client_conn: 500,
  server_login_retry: 1,
  ignore_startup_parameters: 'extra_float_digits',
}

/**
 * Starts PgBouncer in front of a PostgreSQL server, or of a proxy to one. Throws ENGINE_MISSING where PgBouncer is not
 * installed.
 */
export async function startPgBouncer(upstream: { readonly port: number }, options: PgBouncerOptions = {}): Promise<PgBouncer> {
  const program = engineProgram('pgbouncer')
  const folder = engineFolder('pgbouncer')
  const port = await freePort()
  const users = writeEngineFile(folder, 'users.txt', `"${CREDENTIALS.user}" "${CREDENTIALS.password}"\n`)
  const settings = {
    ...SETTINGS,
    pool_mode: options.poolMode ?? 'transaction',
    ...options.settings,
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: users,
    admin_users: CREDENTIALS.user,
  }
  const lines = Object.entries(settings).map(([key, value]) => `${key} = ${value}`)
  const databases = ['[databases]', `* = host=127.0.0.1 port=${upstream.port}`]
  const file = writeEngineFile(folder, 'pgbouncer.ini', [...databases, '[pgbouncer]', ...lines, ''].join('\n'))
  const server = new ServerProcess({
    name: 'PgBouncer',
    folder,
    port,
    command: [program, file],
    isReady: async () => (await firstAnswer(port, SSL_REQUEST)) === 'N',
    stopSignal: 'SIGINT', // waits for open transactions
    endSignal: 'KILL',
  })
  await server.open()
  const url = postgresUrl(port)
  return {
    port,
    url,
    ...CREDENTIALS,
    query: <T extends PostgresRow>(sql: string, values?: readonly unknown[]) => queryOnce(url, sql, values) as Promise<T[]>,
    start: () => server.start(),
    stop: () => server.stop(),
    kill: () => server.kill(),
    log: () => server.log(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** The question whether the server speaks TLS, which it answers before a login. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
