import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, type CallContext } from '@svc/core'
import type { Postgres, SqlResult, SqlStatement } from '@svc/core/contracts'
import type { SetPermits } from '@svc/storage-kit/permits'

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

/** A request fails rather than wait longer for the database. */
const PERMIT_MS = 1_000

/** Sets the number of permits of a worker in the row of a name. */
export function permitsIn(sql: BusSql, self: string, cluster: string): SetPermits {
  const number = `greatest($3::int, least($4::int, $5::int - (SELECT coalesce(sum(v::int), 0)::int FROM jsonb_each_text(p.held - $2::text) AS e(k, v))))`
  return async (name, { least, wanted, limit }) => {
    const key = `${cluster}\n${name}`
    const statements = [
      {
        text: `INSERT INTO ${sql.s}.bus_permits AS p (name, held) VALUES ($1, jsonb_build_object($2::text, greatest($3::int, least($4::int, $5::int))))
          ON CONFLICT (name) DO UPDATE SET held = CASE WHEN ${number} > 0 THEN p.held || jsonb_build_object($2::text, ${number}) ELSE p.held - $2::text END
          RETURNING coalesce((held->>$2::text)::int, 0) AS held`,
        values: [key, self, least, wanted, limit],
      },
      {
        text: `DELETE FROM ${sql.s}.bus_permits WHERE name = $1 AND held IN ('{}', jsonb_build_object($2::text, 0))`,
        values: [key, self],
      },
    ]
    const [row] = await sql.run(statements, PERMIT_MS)
    return Number(row!.rows[0]?.held ?? 0)
  }
}
