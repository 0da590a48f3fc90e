import type { IndexPaths, Json, LogEntry, LogQuery, RangePage, StoreRecord, TextHit, TextPage } from '@svc/core/contracts'
import { type CheckedSearch, createSnippets, cursorOf, type Span, TEXT_LIMITS } from '@svc/storage-kit'
import { indexOf, loadCatalog, type StoredCatalog, textOf } from './catalog.ts'
import { isLost, storeError } from './errors.ts'
import type { Line, Result, Row, Statement } from './line.ts'
import { cutPosition } from './places.ts'
import { quoted } from './schema.ts'
import { searchStep, statsOf, type TextStats } from './text.ts'

/** Reads through a small pool of connections. */
export interface Reader {
  get(collection: string, key: string): Promise<StoreRecord | undefined>
  range(
    collection: string,
    paths: IndexPaths,
    span: Span,
    query: { readonly reverse: boolean; readonly limit: number }
  ): Promise<RangePage>
  read(log: string, id: string, query: LogQuery): Promise<LogEntry[]>
  search(collection: string, search: CheckedSearch, limit: number): Promise<TextPage>
  /** Milliseconds until a lease expires; 0 or less if it is free. */
  busyMs(lease: string): Promise<number>
  /** Runs any statement. */
  ask(statement: Statement, values?: readonly unknown[]): Promise<Result>
  /** The catalog; read again if `known` is not in it. */
  catalog(known: (catalog: StoredCatalog) => boolean): Promise<StoredCatalog>
  close(): Promise<void>
}

/** Bytes of values after which a page ends. */
const PAGE_BYTES = 8 * 1024 * 1024
/** How long the numbers of a full-text index are used, at least. */
const STATS_MS = 1_000

/** Creates a reader over lines that all go to the same database. `waitMs`: how long a read waits for a connection. */
export function createReader(lines: readonly Line[], schema: string, waitMs: number): Reader {
  const s = quoted(schema)
  let turn = 0
  let catalog: StoredCatalog | undefined
  const stats = new Map<number, { readonly until: number; readonly value: TextStats }>()

  const ask = async (statement: Statement, values?: readonly unknown[]): Promise<Result> => {
    for (const until = performance.now() + waitMs; ; ) {
      const line = lines[turn++ % lines.length]!
      try {
        await line.session(Math.max(0, until - performance.now()))
        return await line.one(statement, values)
      } catch (error) {
        // a read can be repeated
        if (!isLost(error) || line.closed || performance.now() > until) throw storeError(error)
      }
    }
  }
  const loaded = async (known: (catalog: StoredCatalog) => boolean): Promise<StoredCatalog> => {
    if (!catalog || !known(catalog)) catalog = await loadCatalog({ one: ask }, schema)
    return catalog
  }
  const collectionOf = async (name: string) => (await loaded(item => item.collections.has(name))).collections.get(name)
  const indexFor = async (name: string, paths: IndexPaths) =>
    indexOf((await loaded(item => indexOf(item.collections.get(name), paths) !== undefined)).collections.get(name), paths)
  const statsFor = async (index: number): Promise<TextStats> => {
    const known = stats.get(index)
    const now = performance.now()
    if (known && known.until > now) return known.value
    const row = (await ask(statsOf(s), [index])).rows[0]!
    const value = { entries: Number(row.entries), words: Number(row.words) }
    const took = performance.now() - now
    stats.set(index, { value, until: performance.now() + Math.max(STATS_MS, took * 100) })
    return value
  }
  return {
    ask,
    catalog: loaded,
    async get(name, key) {
      const collection = await collectionOf(name)
      if (!collection) return undefined
      const { rows } = await ask(getIn(s), [collection.id, key])
      return rows[0] && recordOf({ ...rows[0], key })
    },
    async range(name, paths, span, { reverse, limit }) {
      if (paths.length === 0) {
        const collection = await collectionOf(name)
        if (!collection) return { records: [] }
        return pageOf((await ask(keysIn(s, span, reverse, limit), [collection.id, span.low, span.high ?? null])).rows, limit)
      }
      const index = await indexFor(name, paths)
      if (index === undefined) return { records: [] }
      const high = span.high === undefined ? [null, null] : cutPosition(span.high)
      return pageOf((await ask(placesIn(s, span, reverse, limit), [index, ...cutPosition(span.low), ...high])).rows, limit)
    },
    async read(name, id, { from, reverse = false, limit }) {
      const log = (await loaded(item => item.logs.has(name))).logs.get(name)
      if (!log) return []
      const { rows } = await ask(entriesIn(s, reverse), [log.id, id, from ?? (reverse ? 2 ** 31 - 1 : 1), limit])
      return rows.map(row => ({ seq: Number(row.seq), value: JSON.parse(String(row.value)) as Json }))
    },
    async search(name, search, limit) {
      const stored = await loaded(item => textOf(item.collections.get(name), search.fields) !== undefined)
      const text = textOf(stored.collections.get(name), search.fields)
      if (!text || search.parsed.all.length === 0) return { hits: [] }
      const shape = { limit: limit + 1, matches: TEXT_LIMITS.matches, stats: await statsFor(text.id) }
      const step = searchStep(s, text, search, shape)
      return step ? hitsOf((await ask(...step)).rows, search, limit) : { hits: [] }
    },
    async busyMs(lease) {
      const { rows } = await ask(busyIn(s), [lease])
      return Number(rows[0]?.ms ?? 0)
    },
    async close() {
      await Promise.all(lines.map(line => line.close()))
    },
  }
}

const getIn = (s: string): Statement => ({
  name: 'get',
  text: `SELECT version, value FROM ${s}.records WHERE collection = $1 AND key = $2`,
})
const busyIn = (s: string): Statement => ({
  name: 'busy',
  text: `SELECT expires - floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms FROM ${s}.leases WHERE name = $1`,
})
const entriesIn = (s: string, reverse: boolean): Statement => ({
  name: reverse ? 'entries_back' : 'entries',
  text: `SELECT e.seq, e.value FROM ${s}.streams t JOIN ${s}.entries e ON e.stream = t.id
    WHERE t.log = $1 AND t.name = $2 AND e.seq ${reverse ? '<=' : '>='} $3 ORDER BY e.seq ${reverse ? 'DESC' : ''} LIMIT $4`,
})

/**
 * A page ends where its values are large, without reading the others: `octet_length` does not. `total` counts the rows with those
 * that are left out.
 */
const sized = (inner: string, reverse: boolean, limit: number): string => {
  const order = reverse ? 'head DESC, tail DESC' : 'head, tail'
  return `SELECT key, version, value, head, tail, total FROM (
      SELECT q.*, count(*) OVER () AS total, sum(octet_length(value)) OVER (ORDER BY ${order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
      FROM (${inner} ORDER BY ${order} LIMIT ${limit + 1}) AS q) AS w
    WHERE before IS NULL OR before <= ${PAGE_BYTES} ORDER BY ${order}`
}

const keysIn = (s: string, { behind, high }: Span, reverse: boolean, limit: number): Statement => ({
  text: sized(
    `SELECT key, version, value, key AS head, '' AS tail FROM ${s}.records
      WHERE collection = $1 AND key ${behind ? '>' : '>='} $2 AND ${high === undefined ? '$3::text IS NULL' : 'key < $3'}`,
    reverse,
    limit
  ),
})

const placesIn = (s: string, { behind, high }: Span, reverse: boolean, limit: number): Statement => ({
  text: sized(
    `SELECT r.key, r.version, r.value, p.head, p.tail FROM ${s}.places p JOIN ${s}.records r ON r.id = p.record
      WHERE p.idx = $1 AND p.head >= $2 AND (p.head, p.tail) ${behind ? '>' : '>='} ($2, $3)
      AND ${high === undefined ? '$4::text IS NULL AND $5::text IS NULL' : 'p.head <= $4 AND (p.head, p.tail) < ($4, $5)'}`,
    reverse,
    limit
  ),
})

const recordOf = (row: Row): StoreRecord => ({
  key: String(row.key),
  version: Number(row.version),
  value: JSON.parse(String(row.value)) as Json,
})

function pageOf(rows: readonly Row[], limit: number): RangePage {
  const records = rows.slice(0, limit).map(recordOf)
  const last = rows[records.length - 1]
  if (!last || Number(last.total) === records.length) return { records }
  return { records, next: cursorOf(`${String(last.head)}${String(last.tail)}`) }
}

function hitsOf(rows: readonly Row[], { fields, parsed, cursorOf: cursorBehind }: CheckedSearch, limit: number): TextPage {
  const snippets = createSnippets(parsed)
  const hits: TextHit[] = []
  let chars = 0
  for (const row of rows) {
    const last = hits.at(-1)
    if (last && (hits.length === limit || chars > PAGE_BYTES))
      return { hits, next: cursorBehind({ score: last.score, key: last.record.key }) }
    const record = recordOf(row)
    hits.push({ record, score: Number(row.score), snippets: snippets.of(fields.fields, record.value) })
    chars += String(row.value).length
  }
  return { hits }
}
