import { codeOf, type CallContext, type SvcError, svcError } from '@svc/core'
import type { Postgres, SqlResult, SqlStatement } from '@svc/core/contracts'
import { storeUnsure } from '@svc/storage-kit'
import { createNotices } from '@svc/storage-kit/follow'
import { isLost, sqlStateOf, storeError } from './errors.ts'
import type { Line } from './line.ts'
import type { Listener } from './listener.ts'
import { quoted } from './schema.ts'

interface DatabaseOptions {
  /** The connection of the listener. */
  readonly line: Line
  readonly listener: Listener
  /** The connection of `runApart`. */
  readonly apart: Line
  readonly schema: string
  readonly mayMake: boolean
  /** Rejects calls after an abort or the close; creates the tables first. */
  readonly enter: (ctx: CallContext) => Promise<void>
}

/** The database for other plugins. It shares the connection that listens. */
export const createDatabase = ({ line, listener, apart, schema, mayMake, enter }: DatabaseOptions): Postgres => ({
  async schema(ctx) {
    await enter(ctx)
    return quoted(schema)
  },
  async run(statements, ctx) {
    await enter(ctx)
    await line.session()
    try {
      const results = await line.run(statements.map(({ text, values }) => [{ text }, values]))
      return results.map(({ rows, rowCount }) => ({ rows, count: rowCount ?? 0 }))
    } catch (error) {
      throw failureOf(error)
    }
  },
  async runApart(statement, ctx) {
    await enter(ctx)
    return sendApart(apart, statement)
  },
  async mayMigrate(ctx) {
    await enter(ctx)
    return mayMake
  },
  async *listen(channels, ctx) {
    await enter(ctx)
    const waiting = createNotices()
    const stops = channels.map(channel =>
      listener.listen(channel, payload => waiting.add(payload === undefined ? {} : { channel, payload }))
    )
    ctx.signal.addEventListener('abort', waiting.wake, { once: true })
    try {
      while (!ctx.signal.aborted) {
        yield* waiting.take()
        await waiting.some(ctx.signal)
      }
    } finally {
      ctx.signal.removeEventListener('abort', waiting.wake)
      for (const stop of stops) stop()
    }
  },
})

/** `Postgres.runApart` on a connection. */
async function sendApart(line: Line, { text, values }: SqlStatement): Promise<SqlResult> {
  await line.session()
  try {
    // the driver returns a list for several statements
    const results = [await line.alone({ text }, values)].flat()
    return { rows: results.flatMap(({ rows }) => rows), count: results.at(-1)?.rowCount ?? 0 }
  } catch (error) {
    if (values === undefined) await line.one({ text: 'ROLLBACK' }).catch(() => {}) // of a transaction of its own
    const sqlState = sqlStateOf(error)
    throw sqlState === '' ? failureOf(error) : withState(failureOf(error), sqlState)
  }
}

function failureOf(error: unknown): SvcError {
  if (codeOf(error)?.startsWith('STORE_')) return error as SvcError
  return isLost(error) ? storeUnsure('the connection to PostgreSQL was lost', error) : storeError(error)
}

/** The same error with the code of PostgreSQL. */
const withState = ({ code, message, details, hint, cause }: SvcError, sqlState: string): SvcError =>
  svcError(code, message, { details: { ...details, sqlState }, ...(hint === undefined ? {} : { hint }), cause })
