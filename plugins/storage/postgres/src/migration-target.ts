import type { Line } from './line.ts'
import { quoted } from './schema.ts'

/** Rows that are counted; a larger table has "more than" so many. */
const MOST = 10_000

/** The data in a schema, as "1 space with 12 records"; undefined if there is none. Tables and declared spaces are no data. */
export async function contentsIn(line: Line, schema: string): Promise<string | undefined> {
  const s = quoted(schema)
  const count = (table: string) => `(SELECT count(*) FROM (SELECT FROM ${s}.${table} LIMIT ${MOST + 1}) AS x)`
  const { rows } = await line.one({
    text: `SELECT (SELECT count(*) FROM ${s}.spaces p
        WHERE EXISTS (SELECT FROM ${s}.collections c WHERE c.space = p.name AND EXISTS (SELECT FROM ${s}.records r WHERE r.collection = c.id))
          OR EXISTS (SELECT FROM ${s}.logs l WHERE l.space = p.name AND EXISTS (SELECT FROM ${s}.streams t WHERE t.log = l.id))) AS spaces,
      ${count('records')} AS records, ${count('streams')} AS streams, ${count('entries')} AS entries, ${count('counts')} AS counts`,
  })
  const { spaces, records, streams, entries, counts } = rows[0]!
  const items = [
    ...(Number(records) > 0 ? [many(records, 'record', 'records')] : []),
    ...(Number(streams) > 0 ? [many(entries, 'log entry', 'log entries')] : []),
    ...(Number(counts) > 0 ? [many(counts, 'counter', 'counters')] : []),
  ]
  if (items.length === 0) return undefined
  const all = items.length > 2 ? `${items.slice(0, -1).join(', ')} and ${items.at(-1)}` : items.join(' and ')
  return Number(spaces) === 0 ? all : `${many(spaces, 'space', 'spaces')} with ${all}`
}

function many(value: unknown, one: string, several: string): string {
  const count = Number(value)
  if (count > MOST) return `more than ${MOST} ${several}`
  return `${count} ${count === 1 ? one : several}`
}
