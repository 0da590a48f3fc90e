import { defineService, type CallContext } from '@svc/core'

/** A value of a statement. An array is an array of PostgreSQL. */
export type SqlValue = string | number | boolean | null | readonly (string | number | boolean | null)[]

export interface SqlStatement {
  readonly text: string
  /** `$1` and so on. */
  readonly values?: readonly SqlValue[]
}

export interface SqlResult {
  /** Values of `bigint` are numbers, those of `jsonb` are parsed. */
  readonly rows: readonly { readonly [column: string]: unknown }[]
  /** The number of rows that the statement has returned or changed. */
  readonly count: number
}

/** A notification. One without a channel says that others can be lost: read what you wait for. */
export interface SqlNotice {
  readonly channel?: string
  readonly payload?: string
}

/**
 * The database of a store in PostgreSQL, for plugins that use PostgreSQL itself, such as a bus. The store creates its tables, those
 * of the bus included. Other plugins use `Store`, which every database has.
 */
export interface Postgres {
  /** The name of the schema, quoted as a part of a statement. */
  schema(ctx: CallContext): Promise<string>
  /**
   * Sends statements at once on one connection to PostgreSQL itself, never through a pooler. Each is a transaction of its own. Throws
   * STORE_UNAVAILABLE when nothing was done, and STORE_UNSURE when the connection broke meanwhile. It does not try again.
   */
  run(statements: readonly SqlStatement[], ctx: CallContext): Promise<readonly SqlResult[]>
  /**
   * Sends one statement on a further connection, so that a slow one delays no notification. Without values, it can be several, with a
   * transaction of their own; the result has the rows of all. Fails as `run`; `details.sqlState` is the code of PostgreSQL.
   */
  runApart(statement: SqlStatement, ctx: CallContext): Promise<SqlResult>
  /** Whether a server may create and change tables. */
  mayMigrate(ctx: CallContext): Promise<boolean>
  /**
   * Listens on channels. A notice without a channel comes first, and whenever the connection was replaced; without LISTEN, behind a
   * pooler, it comes again and again.
   */
  listen(channels: readonly string[], ctx: CallContext): AsyncIterable<SqlNotice>
}
export const Postgres = defineService<Postgres>('postgres', {
  api: 1,
  methods: { schema: 'call', run: 'call', runApart: 'call', mayMigrate: 'call', listen: 'stream' },
})
