import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '@svc/core'
import type { Json, StoreChange } from '@svc/core/contracts'
import { fellBehind } from './errors.ts'
import type { Line, Row, Statement } from './line.ts'
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
  /** A connection to PostgreSQL itself, for LISTEN and NOTIFY. */
  readonly listener: Line
  readonly schema: string
}

interface Watcher {
  stirred: boolean
  ended: boolean
  wake?: () => void
}

/** Notifications of commits are sent at most so often. */
const NOTIFY_MS = 5
/** How often the feed is read while notifications arrive, for those that were lost. */
const LISTENING_MS = 2_000
/** How often it is read without notifications: more seldom while nothing happens. */
const [POLL_MS, LONGEST_POLL_MS] = [50, 1_000]
/** A change can be visible before the feed may be read up to it, because an older transaction is still open. */
const PENDING_MS = 3
const PAGE = 64
/** After a lost connection. */
const AGAIN_MS = 250

/** Creates the watches. Without watchers, nothing listens; commits are still announced. */
export function createWatches({ reader, listener, schema }: WatchesOptions): Watches {
  const watchers = new Set<Watcher>()
  const channel = `svc_${schema}`.slice(0, 60)
  const ending = new AbortController()
  let loop: Promise<void> | undefined
  let listens = false
  let announcing: Promise<void> | undefined
  let trimmed = Number.NEGATIVE_INFINITY

  const stir = (watcher: Watcher) => {
    watcher.stirred = true
    watcher.wake?.()
  }
  const stirAll = () => watchers.forEach(stir)
  const pause = (ms: number) => sleep(ms, undefined, { signal: ending.signal, ref: false }).catch(() => {})

  /** Listens on the open connection until it breaks. Returns at once where a pooler hides notifications. */
  const listen = async () => {
    const session = await listener.session()
    if (session.pooled || session.standby) return
    session.client.on('notification', stirAll)
    await listener.one({ text: `LISTEN ${quoted(channel)}` })
    listens = true
    stirAll() // what was committed before the connection
    while (!session.lost && !ending.signal.aborted && watchers.size > 0) {
      await pause(LISTENING_MS)
      stirAll()
      // a connection that is half open is silent: only a statement shows it
      if (watchers.size > 0 && !ending.signal.aborted) await listener.one({ text: 'SELECT 1' })
    }
    if (!session.lost) await listener.one({ text: `UNLISTEN ${quoted(channel)}` })
  }
  const follow = async () => {
    let ms = POLL_MS
    while (watchers.size > 0 && !ending.signal.aborted) {
      const before = performance.now()
      await listen().catch(() => listener.drop())
      if (listens) ms = POLL_MS
      listens = false
      stirAll()
      await pause(performance.now() - before > AGAIN_MS ? POLL_MS : ms)
      ms = Math.min(ms * 1.5, LONGEST_POLL_MS)
    }
    loop = undefined
    if (watchers.size > 0 && !ending.signal.aborted) loop = follow()
  }
  const announce = async () => {
    await pause(NOTIFY_MS)
    announcing = undefined
    const session = await listener.session()
    if (!session.pooled) await listener.one({ name: 'notify', text: 'SELECT pg_notify($1, $2)' }, [channel, ''])
  }
  const join = (watcher: Watcher) => {
    watchers.add(watcher)
    loop ??= follow()
  }
  const leave = (watcher: Watcher) => {
    watcher.ended = true
    watchers.delete(watcher)
    stir(watcher)
  }
  return {
    watch(collection, signal) {
      const watcher: Watcher = { stirred: true, ended: signal.aborted }
      const begin = feedEnd(reader)
      // Awaited with the first item, which may never be requested.
      begin.catch(() => {})
      if (!watcher.ended) join(watcher)
      const abort = () => leave(watcher)
      signal.addEventListener('abort', abort, { once: true })
      return changes({ reader, schema, collection, watcher, begin }, () => {
        leave(watcher)
        signal.removeEventListener('abort', abort)
      })
    },
    committed() {
      stirAll()
      announcing ??= announce().catch(() => {}) // others read the feed soon anyway
      if (performance.now() - trimmed < TRIM_MS) return
      trimmed = performance.now()
      void reader.ask(trimIn(quoted(schema))).catch(() => {})
    },
    async close() {
      for (const watcher of watchers) leave(watcher)
      ending.abort()
      await announcing
      await listener.close()
      await loop
    },
  }
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
        await stirred(watcher)
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
        else if (found.length === 0) await stirred(watcher)
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
  ...(version !== null && { value: JSON.parse(String(value)) as Json }),
})

async function stirred(watcher: Watcher): Promise<void> {
  if (watcher.stirred || watcher.ended) return
  const { promise, resolve } = Promise.withResolvers<void>()
  watcher.wake = resolve
  await promise
}
