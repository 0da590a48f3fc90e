import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '@svc/core'
import type { Json, StoreChange } from '@svc/core/contracts'
import { fellBehind } from './errors.ts'
import type { Line, Row, Statement } from './line.ts'
import type { Listener } from './listener.ts'
import type { Reader } from './reader.ts'
import { quoted } from './schema.ts'

/** Notifies watchers of changes by all processes. A watcher stores only its position in the feed, however slow it is. */
export interface Watches {
  watch(collection: string, signal: AbortSignal): AsyncIterable<StoreChange>
  /** This process has committed a change of a watched collection. */
  committed(): void
  close(): Promise<void>
}

export interface WatchesOptions {
  readonly reader: Reader
  readonly listener: Listener
  /** The connection of the listener, for NOTIFY. */
  readonly line: Line
  readonly schema: string
}

interface Watcher {
  stirred: boolean
  ended: boolean
  wake?: () => void
  /** Where it waits for changes of a collection. */
  waiting?: { readonly collection: number; place: FeedPlace }
}

/** Notifications of commits are sent at most so often. */
const NOTIFY_MS = 5
/** How often the feed is read without a notification: a process can end between a commit and its notification. */
const UNNOTIFIED_MS = 2_000
/** Between two attempts to read while PostgreSQL does not answer. */
const FAILED_MS = 200
/** A change can be visible before the feed may be read up to it, because an older transaction is still open. */
const PENDING_MS = 3
const PAGE = 64

/** Creates the watches. Without watchers, nothing listens; commits are still announced. */
export const createWatches = (options: WatchesOptions): Watches => new FeedWatches(options)

class FeedWatches implements Watches {
  readonly #options: WatchesOptions
  readonly #channel: string
  readonly #watchers = new Set<Watcher>()
  readonly #ending = new AbortController()
  #stopListening: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined
  #announcing: Promise<void> | undefined
  #looking: Promise<void> | undefined
  #looksAgain = false
  #trimmed = Number.NEGATIVE_INFINITY

  constructor(options: WatchesOptions) {
    this.#options = options
    this.#channel = `svc_${options.schema}`
  }

  watch(collection: string, signal: AbortSignal): AsyncIterable<StoreChange> {
    const { reader, schema } = this.#options
    const watcher: Watcher = { stirred: true, ended: signal.aborted }
    const begin = feedEnd(reader)
    // Awaited with the first item, which may never be requested.
    begin.catch(() => {})
    if (!watcher.ended) this.#join(watcher)
    const abort = () => this.#leave(watcher)
    signal.addEventListener('abort', abort, { once: true })
    return changes({ reader, schema, collection, watcher, begin }, () => {
      this.#leave(watcher)
      signal.removeEventListener('abort', abort)
    })
  }

  committed(): void {
    this.#look()
    this.#announcing ??= this.#announce().catch(() => {}) // others read the feed soon anyway
    if (performance.now() - this.#trimmed < TRIM_MS) return
    this.#trimmed = performance.now()
    const { reader, schema } = this.#options
    void reader.ask(trimIn(quoted(schema))).catch(() => {})
  }

  async close(): Promise<void> {
    for (const watcher of this.#watchers) this.#leave(watcher)
    this.#ending.abort()
    await this.#announcing
    await this.#looking
  }

  /** Stirs the watchers for which there are changes, with one statement for all. Looks that are asked for meanwhile are one. */
  #look(): void {
    this.#looksAgain = true
    this.#looking ??= this.#lookUntilDone()
      .catch(() => {}) // the next look repeats it
      .finally(() => (this.#looking = undefined))
  }

  async #lookUntilDone(): Promise<void> {
    const { reader, schema } = this.#options
    while (this.#looksAgain) {
      this.#looksAgain = false
      const waiting = [...this.#watchers].flatMap(watcher => (watcher.waiting ? [{ watcher, at: watcher.waiting }] : []))
      for (const watcher of this.#watchers) if (!watcher.waiting) stir(watcher)
      if (waiting.length === 0) continue
      const values = [
        waiting.map(({ at }) => at.collection),
        waiting.map(({ at }) => at.place.xid),
        waiting.map(({ at }) => at.place.key),
      ]
      const rows = await rowsOf(reader, newsIn(quoted(schema)), values)
      for (const { n, news, timeline, horizon } of rows ?? []) {
        const { watcher, at } = waiting[Number(n) - 1]!
        if (news === true || timeline !== at.place.timeline) stir(watcher)
        else at.place = { ...at.place, xid: String(horizon), key: '' }
      }
    }
  }

  #join(watcher: Watcher): void {
    this.#watchers.add(watcher)
    if (this.#stopListening) return
    this.#stopListening = this.#options.listener.listen(this.#channel, () => this.#look())
    this.#timer = setInterval(() => this.#look(), UNNOTIFIED_MS).unref()
  }

  #leave(watcher: Watcher): void {
    watcher.ended = true
    this.#watchers.delete(watcher)
    stir(watcher)
    if (this.#watchers.size > 0) return
    clearInterval(this.#timer)
    this.#stopListening?.()
    this.#stopListening = undefined
  }

  async #announce(): Promise<void> {
    const { line } = this.#options
    await sleep(NOTIFY_MS, undefined, { signal: this.#ending.signal, ref: false }).catch(() => {})
    this.#announcing = undefined
    const session = await line.session()
    if (!session.pooled) await line.one({ name: 'notify', text: 'SELECT pg_notify($1, $2)' }, [this.#channel, ''])
  }
}

function stir(watcher: Watcher): void {
  watcher.stirred = true
  watcher.wake?.()
}

/**
 * A position in the feed: a transaction, and its last key that was read. It is for one timeline, because a promoted standby can
 * give ids of transactions again.
 */
interface FeedPlace {
  readonly timeline: string
  readonly xid: string
  readonly key: string
}

/** The timeline of a primary; a standby has none of its own. */
const TIMELINE = `CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline`
const HORIZON = 'pg_snapshot_xmin(pg_current_snapshot())'

async function feedEnd(reader: Reader): Promise<FeedPlace> {
  const { rows } = await reader.ask({ name: 'feed_end', text: `SELECT ${HORIZON}::text AS xid, ${TIMELINE}` })
  return { xid: String(rows[0]!.xid), key: '', timeline: String(rows[0]!.timeline) }
}

/**
 * The changes from a place up to the horizon of the snapshot, behind which a transaction can still be open. A first row without a
 * key has the facts.
 */
const feedIn = (s: string): Statement => ({
  name: 'feed_read',
  text: `SELECT ${HORIZON}::text AS horizon, ${TIMELINE}, m.value::text::xid8 >= $2::xid8 AS forgotten,
      EXISTS (SELECT FROM ${s}.feed e WHERE e.collection = $1 AND e.xid >= ${HORIZON}) AS pending,
      f.key, f.xid::text AS xid, r.version, r.value
    FROM ${s}.meta m LEFT JOIN LATERAL (SELECT * FROM ${s}.feed x WHERE x.collection = $1 AND (x.xid, x.key) > ($2::xid8, $3) AND x.xid < ${HORIZON}
      ORDER BY x.xid, x.key LIMIT ${PAGE}) AS f ON true
    LEFT JOIN ${s}.records r ON r.collection = $1 AND r.key = f.key
    WHERE m.name = 'forgotten' ORDER BY f.xid, f.key`,
})

/** For each of the places: whether there is anything behind it. */
const newsIn = (s: string): Statement => ({
  name: 'feed_news',
  text: `SELECT w.n, ${HORIZON}::text AS horizon, ${TIMELINE},
      EXISTS (SELECT FROM ${s}.feed f WHERE f.collection = w.collection AND (f.xid, f.key) > (w.xid::xid8, w.key)) AS news
    FROM unnest($1::integer[], $2::text[], $3::text[]) WITH ORDINALITY AS w(collection, xid, key, n)`,
})

/** How often deletions are removed from the feed. Each watcher has had an hour to read them. */
const TRIM_MS = 60 * 60_000
const trimIn = (s: string): Statement => ({
  text: `WITH old AS (DELETE FROM ${s}.feed WHERE gone AND at < now() - interval '1 hour' RETURNING xid)
    UPDATE ${s}.meta SET value = greatest(value, (SELECT max(xid::text::bigint) FROM old)) WHERE name = 'forgotten' AND EXISTS (SELECT FROM old)`,
})

interface Following {
  readonly reader: Reader
  readonly schema: string
  readonly collection: string
  readonly watcher: Watcher
  readonly begin: Promise<FeedPlace>
}

async function* changes(
  { reader, schema, collection, watcher, begin }: Following,
  done: () => void
): AsyncGenerator<StoreChange> {
  try {
    const stored = await reader.catalog(catalog => catalog.collections.has(collection))
    const id = stored.collections.get(collection)?.id ?? -1
    let place = await begin
    while (!watcher.ended) {
      watcher.stirred = false
      const rows = await rowsOf(reader, feedIn(quoted(schema)), [id, place.xid, place.key])
      if (!rows) {
        await sleep(FAILED_MS, undefined, { ref: false })
        continue
      }
      const facts = rows[0]!
      if (facts.timeline !== place.timeline || facts.forgotten === true) throw fellBehind()
      const found = rows.filter(row => row.key !== null)
      for (const row of found) {
        place = { ...place, xid: String(row.xid), key: String(row.key) }
        yield changeOf(collection, row)
        if (watcher.ended) return
      }
      if (found.length < PAGE) {
        place = { ...place, xid: String(facts.horizon), key: '' }
        if (facts.pending === true) await Promise.race([stirred(watcher), sleep(PENDING_MS)])
        else if (found.length === 0) place = await placeAfter(watcher, id, place)
      }
    }
  } finally {
    done()
  }
}

/** While PostgreSQL fails, nothing is read; the feed has the changes afterwards. */
async function rowsOf(reader: Reader, statement: Statement, values: readonly unknown[]): Promise<readonly Row[] | undefined> {
  try {
    return (await reader.ask(statement, values)).rows
  } catch (error) {
    if (codeOf(error) !== 'STORE_UNAVAILABLE') throw error
    return undefined
  }
}

const changeOf = (collection: string, { key, version, value }: Row): StoreChange => ({
  collection,
  key: String(key),
  version: Number(version ?? 0),
  ...(version !== null && { value: JSON.parse(value as string) as Json }),
})

/** Waits for changes. Returns from where to read. */
async function placeAfter(watcher: Watcher, collection: number, place: FeedPlace): Promise<FeedPlace> {
  watcher.waiting = { collection, place }
  await stirred(watcher)
  const { place: next } = watcher.waiting
  delete watcher.waiting
  return next
}

async function stirred(watcher: Watcher): Promise<void> {
  if (watcher.stirred || watcher.ended) return
  const { promise, resolve } = Promise.withResolvers<void>()
  watcher.wake = resolve
  await promise
}
