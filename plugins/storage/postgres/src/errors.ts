import { codeOf, shownPath, type SvcError, svcError } from '@svc/core'
import { serverUnavailable, startError, storeNewer, storeReadOnly, storeTooLarge, storeUnavailable } from '@svc/storage-kit'

/** SQLSTATEs after which a connection is of no use: the server shuts down, or it is not the primary any more. */
const REPLACED = new Set(['57P01', '57P02', '57P03', '25006', '08P01', '25P03'])
/** Nothing was done, and another try can succeed. */
const REPEATED = new Set(['40001', '40P01', '23505', '55P03'])

/** SQLSTATE; empty for an error that is not of PostgreSQL. */
export const sqlStateOf = (error: unknown): string => {
  const code = codeOf(error)
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) && (error as { severity?: unknown }).severity !== undefined ? code : ''
}

/** An error of the connection: the answer did not come, or the server ended the session. */
export function isLost(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError) return false
  const state = sqlStateOf(error)
  return REPLACED.has(state) || state.startsWith('08') || (state === '' && codeOf(error)?.startsWith('STORE_') !== true)
}

/** Whether a transaction failed because of another one. */
export const isRepeated = (error: unknown): boolean => REPEATED.has(sqlStateOf(error))

/** The server accepts no writes: it is a standby, or was set so. */
export const isReadOnly = (error: unknown): boolean => sqlStateOf(error) === '25006'

/** The text of a failed transaction's further statements says nothing. */
export const isAfterwards = (error: unknown): boolean => sqlStateOf(error) === '25P02'

const HINTS: Readonly<Record<string, readonly [reason: string, hint: string]>> = {
  '42501': ['the user of the database lacks a right', 'Grant it, or run `svc store init` as a user who may create the schema'],
  '42P01': ['the tables of svc are missing', 'Run `svc store init`'],
  '3F000': ['the schema of svc is missing', 'Run `svc store init`'],
  '53300': ['PostgreSQL has no free connection', 'Raise max_connections of PostgreSQL, or run fewer workers'],
  '53100': ['the disk of PostgreSQL is full', 'Free some space'],
  '57014': [
    'PostgreSQL cancelled the statement: it took too long',
    'Check the load of the database, or raise store.statement_timeout_ms',
  ],
  '57P01': ['PostgreSQL shuts down', 'Wait until it runs again'],
  '57P03': ['PostgreSQL starts', 'Wait until it runs'],
  '0A000': ['PostgreSQL does not support the statement', 'Use PostgreSQL 14 or newer'],
  '08P01': ['the pooler or PostgreSQL rejected the connection', 'Check the log of the pooler'],
}
const SYSTEM: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'no PostgreSQL server answers',
  ENOTFOUND: 'the host of PostgreSQL is unknown',
  EAI_AGAIN: 'the name of the PostgreSQL host cannot be resolved',
  ECONNRESET: 'the connection to PostgreSQL was reset',
  ETIMEDOUT: 'PostgreSQL does not answer',
  EPIPE: 'the connection to PostgreSQL is closed',
  ENOENT: 'the socket of PostgreSQL does not exist',
}

/** What a connection was opened with. The errors of `pg` do not have it. */
export interface Attempt {
  /** Host and port. */
  readonly server: string
  readonly user?: string
  readonly database?: string
  /** The setting with the password. */
  readonly passwordFrom?: string
}
const attempts = new WeakMap<object, Attempt>()

/** Notes with which connection an error has happened, for `storeError`. */
export function noteAttempt(error: unknown, attempt: Attempt): void {
  if (error instanceof Error) attempts.set(error, { ...attempts.get(error), ...attempt })
}

const attemptOf = (error: unknown): Partial<Attempt> => (error instanceof Error ? (attempts.get(error) ?? {}) : {})

/** A name in quotes, for a message. */
const named = (kind: string, name: string | undefined): string => (name === undefined ? kind : `${kind} ${JSON.stringify(name)}`)

/** Errors of a login, by SQLSTATE. */
const LOGIN: Readonly<Record<string, (attempt: Partial<Attempt>) => readonly [reason: string, hint: string]>> = {
  '28P01': ({ user, passwordFrom }) => [
    `PostgreSQL rejected the password of the ${named('user', user)}`,
    `Check the user, and the password in ${passwordFrom ?? 'PGPASSWORD or .pgpass'}`,
  ],
  '28000': ({ user }) => [`PostgreSQL rejected the ${named('user', user)}`, 'Check pg_hba.conf, and the user of store.url'],
  '3D000': ({ database }) => [`the ${named('database', database)} does not exist`, 'Create it, or change store.url'],
}

/**
 * Converts an error of `pg` into an error of the contract. Its message names host and port, if known, and contains no password. HTTP
 * clients do not see it.
 */
export function storeError(error: unknown): SvcError {
  if (codeOf(error)?.startsWith('STORE_')) return error as SvcError
  const attempt = attemptOf(error)
  const { server } = attempt
  const state = sqlStateOf(error)
  if (state === '25006') return readOnly(error)
  if (state === '54000' || state === '54001') return storeTooLarge('PostgreSQL cannot store a value of this size', 'Split it')
  const [reason, hint] = LOGIN[state]?.(attempt) ?? HINTS[state] ?? [undefined, undefined]
  if (reason !== undefined) return serverUnavailable(reason, hint!, server, error)
  if (state !== '') return serverUnavailable(`PostgreSQL failed (${state})`, 'Read its log', server, error)
  const what = SYSTEM[systemCode(error)] ?? 'the connection to PostgreSQL failed'
  return serverUnavailable(what, 'Check PostgreSQL and the network', server, error)
}

/** The server asks for a password, and none is configured. */
export const passwordMissing = (server: string, cause: unknown): SvcError =>
  serverUnavailable(
    'PostgreSQL wants a password, and none is configured',
    'Set store.password_file, password_env or password_command',
    server,
    cause
  )

/** Whether an error of `pg`, which has no code for it, means that the server does not speak TLS. */
export const lacksTls = (error: unknown): boolean =>
  error instanceof Error && error.message === 'The server does not support SSL connections'

export const noTls = (server: string, cause: unknown): SvcError =>
  serverUnavailable(
    'PostgreSQL offers no TLS',
    'Turn on ssl in PostgreSQL. In a network that you trust, set store.tls.mode to off instead',
    server,
    cause
  )

/** Whether an error can mean that a password is missing. `pg` has no code for it. */
export const asksForPassword = (error: unknown): boolean =>
  sqlStateOf(error) === '28P01' || (error instanceof Error && error.message.includes('client password must be'))

/** Several addresses of one host fail together. */
const systemCode = (error: unknown): string =>
  codeOf(error) ?? (error instanceof AggregateError ? (codeOf(error.errors[0]) ?? '') : '')

export const readOnly = (cause?: unknown): SvcError =>
  storeReadOnly('PostgreSQL accepts no writes: it is a standby', 'Name the primary in store.url, or promote the standby', cause)

export const schemaMissing = (schema: string): SvcError =>
  storeUnavailable(`the schema "${schema}" has no tables of svc`, 'Run `svc store init`')

export const schemaOlder = (schema: string, format: number): SvcError =>
  storeUnavailable(`the tables of svc in the schema "${schema}" have the older format ${format}`, 'Run `svc store init`')

export const schemaNewer = (stored: number, known: number): SvcError => storeNewer('the database', stored, known)

export const wrongServer = (what: string, hint: string): SvcError => storeUnavailable(what, hint)

export const fellBehind = (): SvcError =>
  storeUnavailable('this watcher fell too far behind', 'Read the present state and watch again')

export const waitedTooLong = (cause?: unknown): SvcError =>
  storeUnavailable(
    'PostgreSQL has not answered in time',
    'Check PostgreSQL and the network; the next request connects again',
    cause
  )

export const tooManyWaiting = (): SvcError =>
  storeUnavailable('too many calls wait for PostgreSQL', 'Try again in a moment, and check why PostgreSQL is slow')

export const configWrong = (message: string, hint: string): SvcError => svcError('STORE_CONFIG_INVALID', message, { hint })

export const tooFewConnections = (sum: string, server: string): SvcError =>
  serverUnavailable(
    `PostgreSQL has too few connections: ${sum}`,
    'Raise max_connections of PostgreSQL, run fewer workers, lower store.readers, or put a pooler in front and set store.direct_url',
    server
  )

/** An error as the reason why a start or a command fails. */
export const startFailure = (error: unknown, plugin: string): unknown => startError(error, 'POSTGRES_UNAVAILABLE', plugin)

/** Another error of the transaction was not reported. */
export const rolledBack = (): SvcError => storeUnavailable('PostgreSQL has rolled the transaction back', 'Read its log')

export const migrationUnfinished = (schema: string): SvcError =>
  storeUnavailable(
    `a store is being moved into the schema "${schema}"`,
    'Wait for `svc store migrate`, or run it again: it continues where it ended'
  )

export const sourceUnreadable = (file: string, reason: string, cause?: unknown): SvcError =>
  svcError('MIGRATION_REFUSED', `the store file cannot be read: ${reason}`, {
    where: file,
    hint: 'Name the file of the former store with --from sqlite:<file>',
    cause,
  })

export const migrationBusy = (): SvcError =>
  svcError('MIGRATION_REFUSED', 'another process moves a store into this schema', { hint: 'Wait until it has ended' })

/** `contents`: the data that was found. */
export const migrationNotEmpty = (schema: string, contents: string): SvcError =>
  svcError('MIGRATION_REFUSED', `the schema "${schema}" has data already: ${contents}`, {
    hint: 'Set store.schema to a new name, and run the command again. An earlier run that has ended needs no other one',
  })

export const migrationChanged = (file: string): SvcError =>
  svcError('MIGRATION_REFUSED', 'the store file was used since the migration began', {
    where: shownPath(file),
    hint: 'Stop all servers that use the file, and run the command with --restart',
  })

/** An earlier run was interrupted, and has copied from another file. */
export const otherSource = (begun: string, named: string): SvcError =>
  svcError(
    'MIGRATION_REFUSED',
    `an interrupted migration copies ${shownPath(begun)}, and this one would copy ${shownPath(named)}`,
    {
      where: shownPath(named),
      hint: `Continue the first with --from sqlite:${shownPath(begun)}, or pass --restart to delete its copies`,
    }
  )

export const sourceInUse = (file: string): SvcError =>
  svcError('MIGRATION_REFUSED', 'another program uses the store file', {
    where: file,
    hint: 'Stop the server that uses it, and run the command again',
  })

/** The value of a record is no JSON. */
export const recordDamaged = (key: string): SvcError =>
  svcError('MIGRATION_REFUSED', `the record ${JSON.stringify(key.slice(0, 100))} of the store file is damaged`, {
    hint: 'Restore the file from a backup, and run the command with --restart',
  })

/** The hashes of a collection or log differ. */
export const migrationDiffers = (name: string): SvcError =>
  svcError('MIGRATION_FAILED', `the data of "${name}" in PostgreSQL differs from the store file`, {
    hint: 'Run the command with --restart; if it fails again, the database or its disk has changed the data',
  })
