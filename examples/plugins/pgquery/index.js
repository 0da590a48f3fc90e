import process from 'node:process'
import { definePlugin, schema } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import pg from 'pg'

/** @type {import('@svc/core').Schema<{ server: string, database: string, user: string, max_rows: number }>} */
const config = schema({
  type: 'object',
  additionalProperties: false,
  required: ['server', 'database', 'user'],
  properties: {
    server: {
      type: 'string',
      pattern: '^[^:/]+:\\d+$',
      description: 'Host and port of the server, for example db.internal:5432',
    },
    database: { type: 'string', description: 'Name of the database' },
    user: { type: 'string', description: 'User with read access; the password is in PGQUERY_PASSWORD' },
    max_rows: { type: 'integer', minimum: 1, maximum: 1000, default: 100, description: 'Maximum rows in an answer' },
  },
})

/** @type {(pool: pg.Pool, maxRows: number) => import('@svc/core/contracts').Tool} */
const queryDatabase = (pool, maxRows) => ({
  description: 'Runs one SQL query in the database, in a read-only transaction, and returns its rows.',
  category: 'database',
  effects: ['network', 'read'],
  parameters: {
    type: 'object',
    properties: {
      sql: { type: 'string', description: 'One SELECT, with $1, $2 … for values' },
      values: { type: 'array', items: { type: ['string', 'number', 'boolean', 'null'] }, description: 'The values' },
    },
    required: ['sql'],
    additionalProperties: false,
  },
  result: {
    type: 'object',
    properties: { rows: { type: 'array', items: { type: 'object' }, description: 'The rows' } },
    required: ['rows'],
    additionalProperties: false,
  },
  async call(args, { signal }) {
    const { sql, values = [] } = /** @type {{ sql: string, values?: unknown[] }} */ (args)
    signal.throwIfAborted()
    const client = await pool.connect()
    // Ends the query at once. The pool replaces the connection.
    const abort = () => client.release(true)
    signal.addEventListener('abort', abort, { once: true })
    // The caller can leave while the pool connects.
    if (signal.aborted) abort()
    try {
      signal.throwIfAborted()
      await client.query('BEGIN READ ONLY')
      // `extended` allows one statement only, so that none can end the transaction.
      const { rows } = await client.query({ text: sql, values, queryMode: 'extended' })
      await client.query('ROLLBACK')
      const shown = JSON.parse(JSON.stringify(rows.slice(0, maxRows)))
      const text = rows.length > maxRows ? `the first ${maxRows} of ${rows.length} rows` : `${rows.length} rows`
      return { content: [{ type: 'text', text: `${text}:\n${JSON.stringify(shown)}` }], structured: { rows: shown } }
    } catch (error) {
      if (!signal.aborted) await client.query('ROLLBACK').catch(() => {})
      throw error
    } finally {
      signal.removeEventListener('abort', abort)
      if (!signal.aborted) client.release()
    }
  },
})

export default definePlugin({
  section: 'tools.pgquery',
  config,
  setup(scope) {
    const { server, database, user, max_rows: maxRows } = scope.config
    const [host, port] = server.split(':')
    const password = process.env.PGQUERY_PASSWORD
    const pool = new pg.Pool({ host, port: Number(port), database, user, password, max: 10, statement_timeout: 30_000 })
    // An idle connection broke: the pool opens a new connection.
    pool.on('error', err => scope.log.warn({ err }, 'a connection to the database broke'))
    scope.defer(() => pool.end())
    scope.add(Tools, 'query_database', queryDatabase(pool, maxRows))
  },
})
