import type { Line, Statement } from './line.ts'
import { quoted } from './schema.ts'

/** No row that a statement sees was written by this transaction or a later one, except in tables of another server. */
const NEXT = 'pg_snapshot_xmax(pg_current_snapshot())'

/**
 * Repairs the feed of changes in tables that were restored with `pg_dump` on another server. Their transaction ids belong to the old
 * server: where they are higher than those of this one, watchers would wait until it has reached them.
 */
export async function repairRestored(line: Line, schema: string): Promise<void> {
  const s = quoted(schema)
  const { rows } = await line.one(foreignIn(s))
  if (rows[0]!.found === true) await line.one(repairIn(s))
}

const foreignIn = (s: string): Statement => ({
  text: `SELECT EXISTS (SELECT FROM ${s}.meta WHERE name = 'forgotten' AND value >= ${NEXT}::text::bigint) OR EXISTS (
      SELECT FROM ${s}.collections c WHERE EXISTS (SELECT FROM ${s}.feed f WHERE f.collection = c.id AND f.xid >= ${NEXT})
    ) AS found`,
})

const repairIn = (s: string): Statement => ({
  text: `WITH feed AS (UPDATE ${s}.feed SET xid = pg_current_xact_id() WHERE xid >= ${NEXT})
    UPDATE ${s}.meta SET value = 0 WHERE name = 'forgotten' AND value >= ${NEXT}::text::bigint`,
})
