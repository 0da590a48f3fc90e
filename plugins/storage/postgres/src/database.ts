import { codeOf, type CallContext } from '@svc/core'
import type { Postgres } from '@svc/core/contracts'
import { storeUnsure } from '@svc/storage-kit'
import { createNotices } from '@svc/storage-kit/follow'
import { isLost, storeError } from './errors.ts'
import type { Line } from './line.ts'
import type { Listener } from './listener.ts'
import { quoted } from './schema.ts'

interface DatabaseOptions {
  /** The connection of the listener. */
  readonly line: Line
  readonly listener: Listener
  readonly schema: string
  /** Rejects calls after an abort or the close; creates the tables first. */
  readonly enter: (ctx: CallContext) => Promise<void>
}

/** The database for other plugins. It shares the connection that listens. */
export const createDatabase = ({ line, listener, schema, enter }: DatabaseOptions): Postgres => ({
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
      if (codeOf(error)?.startsWith('STORE_')) throw error
      throw isLost(error) ? storeUnsure('the connection to PostgreSQL was lost', error) : storeError(error)
    }
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
