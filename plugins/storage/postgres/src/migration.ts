import { hash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Json } from '@svc/core/contracts'
import type { StoredCollection } from '@svc/storage-kit/stored-catalog'
import { declareSpace, forgetSpaces, insertPlaces, insertTexts, loadCatalog, type StoredCatalog } from './catalog.ts'
import { migrationBusy, migrationChanged, migrationDiffers, migrationNotEmpty, otherSource, recordDamaged } from './errors.ts'
import type { Line, Step } from './line.ts'
import type { MigrationSource, MovedItem } from './migration-source.ts'
import { contentsIn } from './migration-target.ts'
import { placeOf } from './places.ts'
import { lockOf, migrationTable, prepareSchema, quoted } from './schema.ts'
import { textRow } from './text.ts'

/** What is done of a migration. */
export interface MigrationProgress {
  readonly phase: 'copy' | 'check'
  readonly records: number
  readonly entries: number
}

export interface MigrationOptions {
  readonly source: MigrationSource
  /** A connection to PostgreSQL itself, not to a pooler. The schema has its tables. */
  readonly line: Line
  readonly schema: string
  /** Deletes what an earlier run has copied, and begins again. */
  readonly restart: boolean
  readonly signal: AbortSignal
  readonly report: (progress: MigrationProgress) => void
}

/** The result: what was copied, and the hash of both stores. */
export interface MigrationDone {
  readonly records: number
  readonly entries: number
  readonly spaces: readonly { readonly name: string; readonly version: number }[]
  /** SHA-256 of each record and entry, added up. */
  readonly hash: string
}

/**
 * Copies all records, entries and declarations of a store file into an empty database, and compares both by their hashes. Versions
 * and seqs stay as they are. Leases are not copied: no holder lives, and the fences of PostgreSQL are higher than those of a file.
 * Each batch is a transaction with the place that it has reached, so that a run that was killed is continued by the next one. Until
 * the end a table in the schema keeps servers from starting. Throws MIGRATION_REFUSED, MIGRATION_FAILED.
 */
export async function migrate(options: MigrationOptions): Promise<MigrationDone> {
  const { source, line, schema, signal } = options
  const { rows } = await line.one({ text: `SELECT pg_try_advisory_lock(${lockOf(schema, 'migration')}) AS free` })
  if (rows[0]!.free !== true) throw migrationBusy()
  const begun = await line.one({ text: 'SELECT to_regclass($1) IS NOT NULL AS begun' }, [migrationTable(schema)])
  const place = begun.rows[0]!.begun === true ? await goOn(options) : await begin(options)
  const catalog = await loadCatalog(line, schema)
  await copy(options, catalog, place)
  const hashed = await compare(options)
  if (source.markNow() !== source.mark) throw migrationChanged(source.file)
  signal.throwIfAborted()
  const s = quoted(schema)
  await inTransaction(line, async () => void (await line.one({ text: `DROP TABLE ${migrationTable(schema)}` })))
  for (const table of ['records', 'places', 'texts', 'streams', 'entries']) await line.one({ text: `ANALYZE ${s}.${table}` })
  return { ...hashed, spaces: source.spaces.map(({ name, version }) => ({ name, version })) }
}

/** The last item that is copied: of the collection or log number `step`, collections first. */
interface Place {
  readonly step: number
  readonly key: string
  readonly number: number
}
const START: Place = { step: 0, key: '', number: 0 }

/** Where to go on, after an earlier run. */
async function goOn(options: MigrationOptions): Promise<Place> {
  const { source, line, schema, restart } = options
  if (restart) return begin(options, CONTENTS)
  const { rows } = await line.one({ text: `SELECT mark, source, step, key, number FROM ${migrationTable(schema)}` })
  const { mark, source: file, step, key, number } = rows[0]!
  if (mark !== source.mark) throw file === source.file ? migrationChanged(source.file) : otherSource(String(file), source.file)
  return { step: Number(step), key: String(key), number: Number(number) }
}

/** Tables with what an earlier run has copied. */
const CONTENTS = ['records', 'places', 'texts', 'streams', 'entries', 'feed', 'spaces', 'collections', 'indexes', 'logs']

/**
 * Declares all spaces in a database without data, or in one without what an earlier run has copied. The spaces that `svc store init`
 * has declared are replaced by those of the file: their versions are those of the data.
 */
async function begin({ source, line, schema }: MigrationOptions, former: readonly string[] = []): Promise<Place> {
  const s = quoted(schema)
  const table = migrationTable(schema)
  if (former.length === 0) await prepareSchema(line, schema)
  await inTransaction(line, async () => {
    if (former.length > 0)
      await line.one({ text: `TRUNCATE ${former.map(name => `${s}.${name}`).join(', ')}; DROP TABLE ${table}` })
    await line.one({ text: `SELECT pg_advisory_xact_lock(${lockOf(schema, 'catalog')})` })
    const contents = await contentsIn(line, schema)
    if (contents !== undefined) throw migrationNotEmpty(schema, contents)
    await forgetSpaces(line, schema)
    await line.one({
      text: `CREATE TABLE ${table}(mark text NOT NULL, source text NOT NULL, step integer NOT NULL, key text NOT NULL, number bigint NOT NULL)`,
    })
    await line.one({ text: `INSERT INTO ${table} VALUES ($1, $2, 0, '', 0)` }, [source.mark, source.file])
    for (const space of source.spaces) await declareSpace(line, schema, space)
  })
  return START
}

async function inTransaction(line: Line, work: () => Promise<void>): Promise<void> {
  await line.one({ text: 'BEGIN' })
  try {
    await work()
    await line.one({ text: 'COMMIT' })
  } catch (error) {
    await line.one({ text: 'ROLLBACK' }).catch(() => {})
    throw error
  }
}

/** Items and characters of one batch. */
const [MOST_ITEMS, MOST_CHARS] = [1_000, 4_000_000]

/** Takes items in batches of a limited size. */
function* batchesOf(items: Iterable<MovedItem>): Iterable<MovedItem[]> {
  let batch: MovedItem[] = []
  let chars = 0
  for (const item of items) {
    batch.push(item)
    chars += item.value.length
    if (batch.length < MOST_ITEMS && chars < MOST_CHARS) continue
    yield batch
    batch = []
    chars = 0
  }
  if (batch.length > 0) yield batch
}

async function copy(
  { source, line, schema, signal, report }: MigrationOptions,
  catalog: StoredCatalog,
  from: Place
): Promise<void> {
  const { collections, logs } = source
  let [records, entries] = await copiedIn(line, schema)
  report({ phase: 'copy', records, entries })
  for (let step = from.step; step < collections.length + logs.length; step++) {
    const { key, number } = step === from.step ? from : START
    const collection = collections[step]
    const log = logs[step - collections.length]
    const items = collection === undefined ? source.entries(log!, key, number) : source.records(collection, key)
    for (const batch of batchesOf(items)) {
      signal.throwIfAborted()
      const steps =
        collection === undefined
          ? await entrySteps(line, schema, catalog.logs.get(log!)!.id, batch)
          : await recordSteps(line, schema, catalog.collections.get(collection)!, batch)
      const last = batch.at(-1)!
      await line.run(atomic(schema, steps, { step, key: last.key, number: last.number }))
      if (collection === undefined) entries += batch.length
      else records += batch.length
      report({ phase: 'copy', records, entries })
    }
  }
}

async function copiedIn(line: Line, schema: string): Promise<[number, number]> {
  const s = quoted(schema)
  const { rows } = await line.one({
    text: `SELECT (SELECT count(*) FROM ${s}.records) AS records, (SELECT count(*) FROM ${s}.entries) AS entries`,
  })
  return [Number(rows[0]!.records), Number(rows[0]!.entries)]
}

/** The steps as one transaction, with the place that they reach. */
const atomic = (schema: string, steps: readonly Step[], { step, key, number }: Place): Step[] => [
  [{ text: 'BEGIN' }],
  ...steps,
  [{ text: `UPDATE ${migrationTable(schema)} SET step = $1, key = $2, number = $3` }, [step, key, number]],
  [{ text: 'COMMIT' }],
]

/** Ids of the store's sequence, which are given out in blocks. */
const BLOCK = 1000
async function idsFor(line: Line, schema: string, count: number): Promise<number[]> {
  const blocks = Math.ceil(count / BLOCK)
  const { rows } = await line.one({ text: `SELECT nextval('${quoted(schema)}.ids') AS first FROM generate_series(1, ${blocks})` })
  return rows.flatMap(({ first }) => Array.from({ length: BLOCK }, (_, at) => Number(first) + at)).slice(0, count)
}

const column = <T>(items: readonly T[], of: (item: T) => unknown) => items.map(of)

async function recordSteps(
  line: Line,
  schema: string,
  { id: collection, indexes, texts }: StoredCollection,
  batch: readonly MovedItem[]
): Promise<Step[]> {
  const s = quoted(schema)
  const ids = await idsFor(line, schema, batch.length)
  const items = batch.map(({ key, value }, at) => ({ id: ids[at]!, key, value: jsonOf(key, value) }))
  const places = indexes.flatMap(({ id, paths }) =>
    items.map(item => [id, ...placeOf(paths, item.value, item.key), item.id] as const)
  )
  const words = texts.flatMap(text => items.map(item => textRow(text, item.id, item.value))).filter(row => row !== undefined)
  const insert = `INSERT INTO ${s}.records(id, collection, key, version, value)
    SELECT id, ${collection}, key, version, value FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[]) AS u(id, key, version, value)`
  return [
    [
      { text: insert },
      [ids, column(batch, item => item.key), column(batch, item => item.number), column(batch, item => item.value)],
    ],
    ...(places.length > 0 ? [insertPlaces(s, places)] : []),
    ...(words.length > 0 ? [insertTexts(s, words)] : []),
  ]
}

function jsonOf(key: string, text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    throw recordDamaged(key)
  }
}

async function entrySteps(line: Line, schema: string, log: number, batch: readonly MovedItem[]): Promise<Step[]> {
  const s = quoted(schema)
  // the last entry of a stream in the batch is its length so far
  const lengths = [...new Map(batch.map(({ key, number }) => [key, number]))]
  const fresh = await idsFor(line, schema, lengths.length)
  const streams = `INSERT INTO ${s}.streams(id, log, name, length)
    SELECT id, ${log}, name, length FROM unnest($1::bigint[], $2::text[], $3::integer[]) AS u(id, name, length)
    ON CONFLICT (log, name) DO UPDATE SET length = excluded.length`
  const entries = `INSERT INTO ${s}.entries(stream, seq, value)
    SELECT st.id, u.seq, u.value FROM unnest($1::text[], $2::integer[], $3::text[]) AS u(name, seq, value)
    JOIN ${s}.streams st ON st.log = ${log} AND st.name = u.name`
  return [
    [{ text: streams }, [fresh, column(lengths, ([name]) => name), column(lengths, ([, length]) => length)]],
    [{ text: entries }, [column(batch, item => item.key), column(batch, item => item.number), column(batch, item => item.value)]],
  ]
}

/** Adds up the SHA-256 of items in any order, modulo 2^256. */
class Sum {
  count = 0
  #sum = 0n

  add({ key, number, value }: MovedItem): void {
    this.count++
    this.#sum = BigInt.asUintN(256, this.#sum + BigInt(`0x${hash('sha256', JSON.stringify([key, number, value]), 'hex')}`))
  }

  get text(): string {
    return this.#sum.toString(16).padStart(64, '0')
  }
}

/** Compares both stores, collection by collection and log by log. Throws MIGRATION_FAILED. */
async function compare(options: MigrationOptions): Promise<Pick<MigrationDone, 'records' | 'entries' | 'hash'>> {
  const { source, schema } = options
  const s = quoted(schema)
  const records = await compareSums(options, source.collections, {
    items: name => source.records(name, ''),
    text: `SELECT c.name AS owner, r.key, r.version AS number, r.value FROM ${s}.records r JOIN ${s}.collections c ON c.id = r.collection`,
  })
  const entries = await compareSums(options, source.logs, {
    items: name => source.entries(name, '', 0),
    text: `SELECT l.name AS owner, st.name AS key, e.seq AS number, e.value
      FROM ${s}.entries e JOIN ${s}.streams st ON st.id = e.stream JOIN ${s}.logs l ON l.id = st.log`,
  })
  return { records: records.count, entries: entries.count, hash: hash('sha256', `${records.text} ${entries.text}`, 'hex') }
}

interface Compared {
  readonly items: (name: string) => Iterable<MovedItem>
  /** The same items of all names in PostgreSQL. */
  readonly text: string
}

async function compareSums(options: MigrationOptions, names: readonly string[], { items, text }: Compared) {
  const { signal, report } = options
  const stored = await sumsIn(options, text)
  let [count, all] = [0, '']
  for (const name of names) {
    const sum = new Sum()
    for (const batch of batchesOf(items(name))) {
      for (const item of batch) sum.add(item)
      signal.throwIfAborted()
      await nextTurn()
    }
    const other = stored.get(name) ?? new Sum()
    stored.delete(name)
    if (other.text !== sum.text || other.count !== sum.count) throw migrationDiffers(name)
    count += sum.count
    all += `${name} ${sum.text}\n`
  }
  const [extra] = stored.keys()
  if (extra !== undefined) throw migrationDiffers(extra)
  report({ phase: 'check', records: 0, entries: 0 })
  return { count, text: all }
}

/** Rows of a page: fewer while values are large. */
const [FEWEST, MOST_ROWS] = [10, 2_000]

/** The sums of all names in PostgreSQL, read with a cursor, in the order in which it has them. */
async function sumsIn({ line, signal }: MigrationOptions, text: string): Promise<Map<string, Sum>> {
  const sums = new Map<string, Sum>()
  let size = FEWEST
  await inTransaction(line, async () => {
    await line.one({ text: `DECLARE moved NO SCROLL CURSOR FOR ${text}` })
    for (;;) {
      signal.throwIfAborted()
      const { rows } = await line.one({ text: `FETCH ${size} FROM moved` })
      if (rows.length === 0) return
      let chars = 0
      for (const { owner, key, number, value } of rows) {
        const name = String(owner)
        const sum = sums.get(name) ?? new Sum()
        sum.add({ key: String(key), number: Number(number), value: String(value) })
        chars += String(value).length
        sums.set(name, sum)
      }
      size = chars > MOST_CHARS ? Math.max(FEWEST, size >> 1) : Math.min(MOST_ROWS, size * 2)
    }
  })
  return sums
}
