import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, type CallContext } from '@svc/core'
import type { Postgres, SqlResult, SqlStatement } from '@svc/core/contracts'

/** Statements about the tables of the bus. */
export interface BusSql {
  /** The schema of the tables, quoted. */
  readonly s: string
  /** As `Postgres.run`; tries again for `retryMs`. So each statement must have the same result when it runs twice. */
  run(statements: readonly SqlStatement[], retryMs?: number): Promise<readonly SqlResult[]>
}

const [FIRST_MS, LONGEST_MS] = [20, 500]
const RETRIED = new Set(['STORE_UNAVAILABLE', 'STORE_UNSURE'])

export async function createSql(postgres: Postgres, lasting: CallContext): Promise<BusSql> {
  return {
    s: await postgres.schema(lasting),
    async run(statements, retryMs = 0) {
      const until = performance.now() + retryMs
      for (let ms = FIRST_MS; ; ms = Math.min(ms * 2, LONGEST_MS)) {
        try {
          return await postgres.run(statements, lasting)
        } catch (error) {
          if (!RETRIED.has(codeOf(error) ?? '') || performance.now() + ms > until) throw error
        }
        await sleep(ms, undefined, { signal: lasting.signal, ref: false })
      }
    },
  }
}

/** The time of the database in milliseconds. */
export const NOW = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/** The channel of a receiver. Names of channels have at most 63 bytes. */
export const channelOf = ({ s }: Pick<BusSql, 's'>, receiver: string): string =>
  `svc_bus_${hash('sha256', `${s}\n${receiver}`).slice(0, 32)}`

export const notify = (channels: readonly string[], payloads: readonly string[]): SqlStatement => ({
  text: 'SELECT pg_notify(c, p) FROM unnest($1::text[], $2::text[]) AS u(c, p)',
  values: [channels, payloads],
})
