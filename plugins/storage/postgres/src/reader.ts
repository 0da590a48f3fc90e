import type { IndexPaths, Json, LogEntry, LogQuery, RangePage, StoreRecord, TextHit, TextPage } from '@svc/core/contracts'
import { canExist, type CheckedSearch, createSnippets, cursorOf, type Span, TEXT_LIMITS } from '@svc/storage-kit'
import { indexOf, textOf } from '@svc/storage-kit/stored-catalog'
import { loadCatalog, type StoredCatalog } from './catalog.ts'
import { isLost, storeError } from './errors.ts'
import type { Line, Result, Row, Statement } from './line.ts'
import { cutPosition, withoutNul } from './places.ts'
import { quoted } from './schema.ts'
import { searchStep, statsOf, type TextStats } from './text.ts'

/** The direction and the length of a page. */
interface RangeShape {
  readonly reverse: boolean
  readonly limit: number
}

/** Reads through a small pool of connections. */
export interface Reader {
  get(collection: string, key: string): Promise<StoreRecord | undefined>
  range(collection: string, paths: IndexPaths, span: Span, shape: RangeShape): Promise<RangePage>
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
export const createReader = (lines: readonly Line[], schema: string, waitMs: number): Reader =>
  new PoolReader(lines, schema, waitMs)

class PoolReader implements Reader {
  readonly #lines: readonly Line[]
  readonly #schema: string
  readonly #s: string
  readonly #waitMs: number
  #turn = 0
  #catalog: StoredCatalog | undefined
  readonly #stats = new Map<number, { readonly until: number; readonly value: TextStats }>()

  constructor(lines: readonly Line[], schema: string, waitMs: number) {
    this.#lines = lines
    this.#schema = schema
    this.#s = quoted(schema)
    this.#waitMs = waitMs
  }

  async ask(statement: Statement, values?: readonly unknown[]): Promise<Result> {
    for (const until = performance.now() + this.#waitMs; ; ) {
      const line = this.#lines[this.#turn++ % this.#lines.length]!
      try {
        await line.session(Math.max(0, until - performance.now()))
        return await line.alone(statement, values)
      } catch (error) {
        // a read can be repeated
        if (!isLost(error) || line.closed || performance.now() > until) throw storeError(error)
      }
    }
  }

  async catalog(known: (catalog: StoredCatalog) => boolean): Promise<StoredCatalog> {
    if (!this.#catalog || !known(this.#catalog))
      this.#catalog = await loadCatalog({ one: (statement, values) => this.ask(statement, values) }, this.#schema)
    return this.#catalog
  }

  async get(name: string, key: string): Promise<StoreRecord | undefined> {
    const collection = await this.#collection(name)
    if (!collection || !canExist(key)) return undefined
    const { rows } = await this.ask(getIn(this.#s), [collection.id, key])
    return rows[0] && recordOf({ ...rows[0], key })
  }

  async range(name: string, paths: IndexPaths, given: Span, { reverse, limit }: RangeShape): Promise<RangePage> {
    const span = withoutNul(given)
    if (paths.length === 0) {
      const collection = await this.#collection(name)
      if (!collection) return { records: [] }
      const { rows } = await this.ask(keysIn(this.#s, span, reverse, limit), [collection.id, span.low, span.high ?? null])
      return pageOf(rows, limit)
    }
    const isKnown = (catalog: StoredCatalog) => indexOf(catalog.collections.get(name), paths) !== undefined
    const index = indexOf((await this.catalog(isKnown)).collections.get(name), paths)
    if (index === undefined) return { records: [] }
    const high = span.high === undefined ? [null, null] : cutPosition(span.high)
    const { rows } = await this.ask(placesIn(this.#s, span, reverse, limit), [index, ...cutPosition(span.low), ...high])
    return pageOf(rows, limit)
  }

  async read(name: string, id: string, { from, reverse = false, limit }: LogQuery): Promise<LogEntry[]> {
    const log = (await this.catalog(catalog => catalog.logs.has(name))).logs.get(name)
    if (!log) return []
    const first = Math.min(from ?? (reverse ? LAST_SEQ : 1), LAST_SEQ)
    const { rows } = await this.ask(entriesIn(this.#s, reverse), [log.id, id, first, limit])
    return rows.map(row => ({ seq: Number(row.seq), value: JSON.parse(row.value as string) as Json }))
  }

  async search(name: string, search: CheckedSearch, limit: number): Promise<TextPage> {
    const isKnown = (catalog: StoredCatalog) => textOf(catalog.collections.get(name), search.fields) !== undefined
    const text = textOf((await this.catalog(isKnown)).collections.get(name), search.fields)
    if (!text || search.parsed.all.length === 0) return { hits: [] }
    const shape = { limit: limit + 1, matches: TEXT_LIMITS.matches, stats: await this.#statsOf(text.id) }
    const step = searchStep(this.#s, text, search, shape)
    return step ? hitsOf((await this.ask(...step)).rows, search, limit) : { hits: [] }
  }

  async busyMs(lease: string): Promise<number> {
    const { rows } = await this.ask(busyIn(this.#s), [lease])
    return Number(rows[0]?.ms ?? 0)
  }

  async close(): Promise<void> {
    await Promise.all(this.#lines.map(line => line.close()))
  }

  async #collection(name: string) {
    return (await this.catalog(catalog => catalog.collections.has(name))).collections.get(name)
  }

  /** The numbers of a full-text index, read again at times: that takes longer the larger it is. */
  async #statsOf(index: number): Promise<TextStats> {
    const known = this.#stats.get(index)
    const began = performance.now()
    if (known && known.until > began) return known.value
    const row = (await this.ask(statsOf(this.#s), [index])).rows[0]!
    const value = { entries: Number(row.entries), words: Number(row.words) }
    const now = performance.now()
    this.#stats.set(index, { value, until: now + Math.max(STATS_MS, (now - began) * 100) })
    return value
  }
}

/** The greatest seq of an entry. */
const LAST_SEQ = 2 ** 31 - 1

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
  value: JSON.parse(row.value as string) as Json,
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
    chars += (row.value as string).length
  }
  return { hits }
}
