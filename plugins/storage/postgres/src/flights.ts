import type { Json, Space } from '@svc/core/contracts'
import { insertPlaces, insertTexts, migratedSteps, type StoredCatalog } from './catalog.ts'
import { type Call, type GroupState, type RecordState, rowName, type StreamState, valueOf, type WireOp } from './group.ts'
import type { Result, Row, Step } from './line.ts'
import { type PlaceRow, placeOf } from './places.ts'
import { quoted } from './schema.ts'
import { type TextRow, textRow } from './text.ts'

// The statements of a group: those that lock and read its rows, and those that write what it changes. Each of the two goes to the
// server at once. Rows are locked in sorted order. Absent rows cannot be locked: inserting them fails if another transaction was
// first, and the group is evaluated again. If a result depends on the absence of a row that the group does not write, the row is
// inserted and deleted for the same effect.

/** The rows that a group needs. */
interface Needs {
  readonly records: ReadonlyMap<string, { readonly collection: number; readonly key: string }>
  readonly streams: ReadonlyMap<string, { readonly log: number; readonly name: string }>
  readonly leases: ReadonlySet<string>
  /** Leases that are only checked: several transactions can do that at the same time. */
  readonly fences: ReadonlySet<string>
  readonly prefixes: readonly string[]
  readonly acquires: number
}

export function needsOf(calls: readonly Call[], catalog: StoredCatalog): Needs {
  const records = new Map<string, { collection: number; key: string }>()
  const streams = new Map<string, { log: number; name: string }>()
  const [leases, fences] = [new Set<string>(), new Set<string>()]
  const add = (op: WireOp) => {
    if (op.op === 'put' || op.op === 'delete') {
      const id = catalog.collections.get(op.collection)?.id
      if (id !== undefined) records.set(rowName(id, op.key), { collection: id, key: op.key })
    } else if (op.op === 'append' || op.op === 'drop') {
      const id = catalog.logs.get(op.log)?.id
      if (id !== undefined) streams.set(rowName(id, op.id), { log: id, name: op.id })
    }
  }
  for (const call of calls) {
    if (call.kind === 'batch') {
      call.ops.forEach(add)
      if (call.fence) fences.add(call.fence.lease)
    } else if ('lease' in call) leases.add(call.lease)
  }
  for (const lease of leases) fences.delete(lease)
  const prefixes = calls.flatMap(call => (call.kind === 'releaseHolder' ? [call.prefix] : []))
  return { records, streams, leases, fences, prefixes, acquires: calls.filter(call => call.kind === 'acquire').length }
}

/** Statements that lock and read the rows; `parse` takes their results. */
export interface ReadFlight {
  readonly steps: readonly Step[]
  parse(results: readonly Result[]): GroupState
}

const LEASE = 'SELECT name, holder, fence, expires'

export function readFlight(schema: string, needs: Needs, catalog: StoredCatalog): ReadFlight {
  const s = quoted(schema)
  const records = [...needs.records.values()]
  const streams = [...needs.streams.values()]
  const indexed = [...catalog.collections.values()]
    .filter(({ indexes, texts }) => indexes.length + texts.length > 0)
    .map(({ id }) => id)
  const steps: Step[] = []
  const kinds: ('lease' | 'stream' | 'record' | 'now')[] = []
  const add = (kind: (typeof kinds)[number], step: Step) => {
    kinds.push(kind)
    steps.push(step)
  }
  if (needs.leases.size > 0)
    add('lease', [
      { name: 'leases', text: `${LEASE} FROM ${s}.leases WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE` },
      [[...needs.leases]],
    ])
  if (needs.fences.size > 0)
    add('lease', [
      { name: 'fences', text: `${LEASE} FROM ${s}.leases WHERE name = ANY($1::text[]) ORDER BY name FOR KEY SHARE` },
      [[...needs.fences]],
    ])
  for (const prefix of needs.prefixes)
    add('lease', [
      { name: 'holders', text: `${LEASE} FROM ${s}.leases WHERE starts_with(holder, $1) ORDER BY name FOR UPDATE` },
      [prefix],
    ])
  if (streams.length > 0)
    add('stream', [
      {
        name: 'streams',
        text: `SELECT t.id, t.log, t.name, t.length FROM unnest($1::integer[], $2::text[]) AS u(log, name)
          JOIN ${s}.streams t ON t.log = u.log AND t.name = u.name ORDER BY t.log, t.name FOR UPDATE OF t`,
      },
      [streams.map(({ log }) => log), streams.map(({ name }) => name)],
    ])
  if (records.length > 0)
    add('record', [
      {
        name: 'records',
        text: `SELECT r.id, r.collection, r.key, r.version, CASE WHEN r.collection = ANY($3::integer[]) THEN r.value END AS value
          FROM unnest($1::integer[], $2::text[]) AS u(collection, key)
          JOIN ${s}.records r ON r.collection = u.collection AND r.key = u.key ORDER BY r.collection, r.key FOR UPDATE OF r`,
      },
      [records.map(({ collection }) => collection), records.map(({ key }) => key), indexed],
    ])
  // after the locks: the clock must not be older than what was waited for
  add('now', needs.acquires > 0 ? [{ name: 'fence', text: withFences(s) }, [needs.acquires]] : [NOW])
  return {
    steps,
    parse: results =>
      stateOf(
        needs,
        catalog,
        Map.groupBy(results, (_, at) => kinds[at]!)
      ),
  }
}

const CLOCK = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now'
const NOW = { name: 'now', text: `SELECT ${CLOCK}` }
/** A promoted standby can lack the last numbers of the sequence, but it has a higher timeline. */
const withFences = (s: string) =>
  `SELECT ${CLOCK}, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint AS timeline,
    ARRAY(SELECT nextval('${s}.fences') FROM generate_series(1, $1::integer))::text[] AS numbers`
const TIMELINE = 2 ** 32

function stateOf(needs: Needs, catalog: StoredCatalog, results: ReadonlyMap<string, readonly Result[]>): GroupState {
  const rows = (kind: string): Row[] => (results.get(kind) ?? []).flatMap(result => result.rows)
  const [clock] = rows('now')
  const collections = new Map([...catalog.collections.values()].map(collection => [collection.id, collection]))
  const records = new Map<string, RecordState>()
  for (const [name, { collection, key }] of needs.records)
    records.set(name, {
      collection: collections.get(collection)!,
      key,
      storedVersion: 0,
      version: 0,
      text: undefined,
      changed: false,
      assertsAbsence: false,
    })
  for (const row of rows('record')) {
    const version = Number(row.version)
    const stored = row.value === null ? {} : { storedText: row.value as string }
    const name = rowName(Number(row.collection), String(row.key))
    records.set(name, { ...records.get(name)!, id: Number(row.id), storedVersion: version, version, ...stored })
  }
  const streams = new Map<string, StreamState>()
  const fresh = { storedLength: 0, dropped: false, length: 0, assertsAbsence: false }
  for (const [name, { log, name: id }] of needs.streams) streams.set(name, { ...fresh, log, name: id, appended: [] })
  for (const row of rows('stream')) {
    const length = Number(row.length)
    const name = rowName(Number(row.log), String(row.name))
    streams.set(name, { ...streams.get(name)!, id: Number(row.id), storedLength: length, length })
  }
  const leases = new Map(
    rows('lease').map(row => {
      const [name, holder] = [String(row.name), String(row.holder)]
      return [name, { name, holder, stored: true, fence: Number(row.fence), expires: Number(row.expires), changed: false }]
    })
  )
  const numbers = ((clock?.numbers ?? []) as string[]).map(number => Number(clock!.timeline) * TIMELINE + Number(number))
  return {
    catalog,
    records,
    streams,
    leases,
    now: Number(clock?.now),
    nextFence: () => numbers.shift()!,
    migrations: [],
    isProbe: false,
  }
}

/** What a group writes. */
export interface WriteFlight {
  readonly steps: readonly Step[]
  /** Whether a watched collection changed. */
  readonly watched: boolean
}

export function writeFlight(
  schema: string,
  state: GroupState,
  spaces: ReadonlyMap<string, Space>,
  nextId: () => number
): WriteFlight {
  const s = quoted(schema)
  const records = recordSteps(s, [...state.records.values()], nextId)
  const steps = [...leaseSteps(s, state), ...streamSteps(s, [...state.streams.values()], nextId), ...records.steps]
  for (const { space, version } of state.migrations)
    steps.push(...migratedSteps(schema, state.catalog, spaces.get(space)!, version))
  if (state.isProbe) steps.push([{ name: 'probe', text: `UPDATE ${s}.meta SET value = value + 1 WHERE name = 'probe'` }])
  return { steps, watched: records.watched }
}

/** The number of ids that the group can take. */
export const idsFor = ({ records, streams }: GroupState): number => records.size + streams.size

function leaseSteps(s: string, { leases }: GroupState): Step[] {
  const changed = [...leases.values()].filter(lease => lease.changed).sort((a, b) => (a.name < b.name ? -1 : 1))
  const values = (list: typeof changed) => [
    list.map(({ name }) => name),
    list.map(({ holder }) => holder),
    list.map(({ fence }) => fence),
    list.map(({ expires }) => expires),
  ]
  const columns = 'unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[])'
  const [freed, held] = [changed.filter(({ fence }) => fence === 0), changed.filter(({ fence }) => fence !== 0)]
  const [kept, fresh] = [held.filter(({ stored }) => stored), held.filter(({ stored }) => !stored)]
  const gone = freed.filter(({ stored }) => stored)
  const steps: Step[] = []
  if (gone.length > 0)
    steps.push([
      { name: 'leases_out', text: `DELETE FROM ${s}.leases WHERE name = ANY($1::text[])` },
      [gone.map(({ name }) => name)],
    ])
  if (kept.length > 0)
    steps.push([
      {
        name: 'leases_kept',
        text: `UPDATE ${s}.leases l SET holder = u.holder, fence = u.fence, expires = u.expires
          FROM ${columns} AS u(name, holder, fence, expires) WHERE l.name = u.name`,
      },
      values(kept),
    ])
  if (fresh.length > 0)
    steps.push([{ name: 'leases_in', text: `INSERT INTO ${s}.leases SELECT * FROM ${columns}` }, values(fresh)])
  return steps
}

/** What happens to a row: it is inserted, changed, deleted, or inserted and deleted to assert its absence. */
type Fate = 'fresh' | 'kept' | 'gone' | 'guard' | 'none'

function fateOf({
  isNew,
  isGone,
  isChanged,
  asserts,
}: Readonly<Record<'isNew' | 'isGone' | 'isChanged' | 'asserts', boolean>>): Fate {
  if (isNew && isGone) return asserts || isChanged ? 'guard' : 'none'
  if (isNew) return 'fresh'
  if (!isChanged) return 'none'
  return isGone ? 'gone' : 'kept'
}

/** A step for these rows, if there are any. */
const forRows = <T>(rows: readonly T[], step: (rows: readonly T[]) => Step): Step[] => (rows.length === 0 ? [] : [step(rows)])
const idsOf = (rows: readonly { readonly id: number }[]) => rows.map(({ id }) => id)

const isStreamChanged = ({ length, storedLength, dropped }: StreamState) => length !== storedLength || dropped

function streamSteps(s: string, streams: readonly StreamState[], nextId: () => number): Step[] {
  const fates = new Map(
    streams.map(stream => {
      const [isNew, isGone] = [stream.id === undefined, stream.length === 0]
      return [stream, fateOf({ isNew, isGone, isChanged: isStreamChanged(stream), asserts: stream.assertsAbsence })]
    })
  )
  const rows = streams
    .filter(stream => fates.get(stream) !== 'none')
    .map(stream => ({ stream, fate: fates.get(stream)!, id: stream.id ?? nextId() }))
  const of = (...wanted: Fate[]) => rows.filter(({ fate }) => wanted.includes(fate))
  const entries = rows.flatMap(({ stream: { appended, length }, id }) =>
    appended.map((text, at) => ({ id, seq: length - appended.length + 1 + at, text }))
  )
  const remove = (list: typeof rows): Step[] =>
    forRows(list, gone => [{ name: 'streams_out', text: `DELETE FROM ${s}.streams WHERE id = ANY($1::bigint[])` }, [idsOf(gone)]])
  return [
    ...forRows(
      rows.filter(({ stream }) => stream.dropped),
      dropped => [{ name: 'entries_out', text: `DELETE FROM ${s}.entries WHERE stream = ANY($1::bigint[])` }, [idsOf(dropped)]]
    ),
    ...remove(of('gone')),
    ...forRows(of('kept'), kept => [
      {
        name: 'lengths',
        text: `UPDATE ${s}.streams t SET length = u.length FROM unnest($1::bigint[], $2::integer[]) AS u(id, length) WHERE t.id = u.id`,
      },
      [idsOf(kept), kept.map(({ stream }) => stream.length)],
    ]),
    ...forRows(of('fresh', 'guard'), fresh => [
      {
        name: 'streams_in',
        text: `INSERT INTO ${s}.streams SELECT * FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::integer[])
          AS u(id, log, name, length) ORDER BY log, name COLLATE "C"`,
      },
      [
        idsOf(fresh),
        fresh.map(({ stream }) => stream.log),
        fresh.map(({ stream }) => stream.name),
        fresh.map(({ stream }) => stream.length),
      ],
    ]),
    ...forRows(entries, list => [
      { name: 'entries_in', text: `INSERT INTO ${s}.entries SELECT * FROM unnest($1::bigint[], $2::integer[], $3::text[])` },
      [idsOf(list), list.map(({ seq }) => seq), list.map(({ text }) => text)],
    ]),
    ...remove(of('guard')),
  ]
}

/** The rows that records move in indexes. */
interface Indexing {
  readonly placesOut: (readonly [idx: number, head: string, record: number])[]
  readonly placesIn: PlaceRow[]
  readonly textsOut: (readonly [idx: number, record: number])[]
  readonly textsIn: TextRow[]
}

function index(record: RecordState, id: number, into: Indexing): void {
  const { collection, storedText, text } = record
  if (collection.indexes.length === 0 && collection.texts.length === 0) return
  const after = valueOf(collection, text)
  indexPlaces(record, id, after, into)
  for (const stored of collection.texts) {
    if (storedText !== undefined) into.textsOut.push([stored.id, id])
    const row = text === undefined ? undefined : textRow(stored, id, after)
    if (row) into.textsIn.push(row)
  }
}

function indexPlaces({ collection, key, storedText, text }: RecordState, id: number, after: Json, into: Indexing): void {
  const before = valueOf(collection, storedText)
  for (const { id: idx, paths } of collection.indexes) {
    const from = storedText === undefined ? undefined : placeOf(paths, before, key)
    const to = text === undefined ? undefined : placeOf(paths, after, key)
    if (from?.[0] === to?.[0] && from?.[1] === to?.[1]) continue
    if (from) into.placesOut.push([idx, from[0], id])
    if (to) into.placesIn.push([idx, to[0], to[1], id])
  }
}

function recordSteps(s: string, records: readonly RecordState[], nextId: () => number): WriteFlight {
  const rows = records.flatMap(record => {
    const [isNew, isGone] = [record.id === undefined, record.text === undefined]
    const fate = fateOf({ isNew, isGone, isChanged: record.changed, asserts: record.assertsAbsence })
    return fate === 'none' ? [] : [{ record, fate, id: record.id ?? nextId() }]
  })
  const of = (...wanted: Fate[]) => rows.filter(({ fate }) => wanted.includes(fate))
  const indexing: Indexing = { placesOut: [], placesIn: [], textsOut: [], textsIn: [] }
  for (const { record, id } of of('fresh', 'kept', 'gone')) index(record, id, indexing)
  const feed = of('fresh', 'kept', 'gone').flatMap(({ record }) => (record.collection.watched ? [record] : []))
  const remove = (list: typeof rows): Step[] =>
    forRows(list, gone => [{ name: 'records_out', text: `DELETE FROM ${s}.records WHERE id = ANY($1::bigint[])` }, [idsOf(gone)]])
  const steps = [
    ...remove(of('gone')),
    ...forRows(of('kept'), kept => [
      {
        name: 'records_kept',
        text: `UPDATE ${s}.records r SET version = u.version, value = u.value
          FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS u(id, version, value) WHERE r.id = u.id`,
      },
      [idsOf(kept), kept.map(({ record }) => record.version), kept.map(({ record }) => record.text)],
    ]),
    ...forRows(of('fresh', 'guard'), fresh => [
      {
        name: 'records_in',
        text: `INSERT INTO ${s}.records SELECT * FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::bigint[], $5::text[])
          AS u(id, collection, key, version, value) ORDER BY collection, key COLLATE "C"`,
      },
      [
        idsOf(fresh),
        fresh.map(({ record }) => record.collection.id),
        fresh.map(({ record }) => record.key),
        fresh.map(({ record }) => record.version),
        fresh.map(({ record }) => record.text ?? 'null'),
      ],
    ]),
    ...remove(of('guard')),
    ...indexSteps(s, indexing),
    ...forRows(feed, list => feedStep(s, list)),
  ]
  return { steps, watched: feed.length > 0 }
}

function indexSteps(s: string, { placesOut, placesIn, textsOut, textsIn }: Indexing): Step[] {
  const steps: Step[] = []
  if (placesOut.length > 0)
    steps.push([
      {
        name: 'places_out',
        text: `DELETE FROM ${s}.places p USING unnest($1::integer[], $2::text[], $3::bigint[]) AS u(idx, head, record)
          WHERE p.idx = u.idx AND p.head = u.head AND p.record = u.record`,
      },
      [placesOut.map(row => row[0]), placesOut.map(row => row[1]), placesOut.map(row => row[2])],
    ])
  if (placesIn.length > 0) steps.push(insertPlaces(s, placesIn))
  if (textsOut.length > 0)
    steps.push([
      {
        name: 'texts_out',
        text: `DELETE FROM ${s}.texts t USING unnest($1::integer[], $2::bigint[]) AS u(idx, record) WHERE t.idx = u.idx AND t.record = u.record`,
      },
      [textsOut.map(row => row[0]), textsOut.map(row => row[1])],
    ])
  if (textsIn.length > 0) steps.push(insertTexts(s, textsIn))
  return steps
}

/** One row for each key, with the transaction of its last change. */
const feedStep = (s: string, feed: readonly RecordState[]): Step => [
  {
    name: 'feed',
    text: `INSERT INTO ${s}.feed SELECT u.collection, u.key, pg_current_xact_id(), u.gone, clock_timestamp()
      FROM unnest($1::integer[], $2::text[], $3::boolean[]) AS u(collection, key, gone) ORDER BY u.collection, u.key COLLATE "C"
      ON CONFLICT (collection, key) DO UPDATE SET xid = excluded.xid, gone = excluded.gone, at = excluded.at`,
  },
  [feed.map(({ collection }) => collection.id), feed.map(({ key }) => key), feed.map(({ text }) => text === undefined)],
]
