import type {
  Json,
  LogEntry,
  LogQuery,
  RangePage,
  RangeQuery,
  Space,
  StoreChange,
  StoreOp,
  StoreRecord,
} from '@svc/core/contracts'
import {
  byBytes,
  type Catalog,
  checkRange,
  checkSize,
  cursorOf,
  sortKey,
  storeConflict,
  storeInvalid,
  storeNewer,
} from '@svc/storage-kit'

//js: /** @typedef {{ version: number, text: string }} Row A record: its value as JSON. */
/** A record: its value as JSON. */
interface Row {
  readonly version: number
  readonly text: string
}

//js: /** @typedef {Map<string, Row>} Rows */
type Rows = Map<string, Row>
//js: /** @typedef {Map<string, string[]>} Streams */
type Streams = Map<string, string[]>

/** Refuses the batch if the number differs from the expected one. */
//js: /** @type {(op: number, expected: number | undefined, actual: number) => void} */
const expect = (op: number, expected: number | undefined, actual: number): void => {
  if (expected !== undefined && expected !== actual) throw storeConflict(op, expected, actual)
}

/** The JSON text of a value. Rejects other values before any write. */
//js: /** @type {(value: unknown) => string} */
const textOf = (value: unknown): string => {
  try {
    //js: /** @type {string | undefined} */
    const text: string | undefined = JSON.stringify(value)
    if (text !== undefined) return text
  } catch {
    throw storeInvalid('a value must be JSON that is not nested too deeply')
  }
  throw storeInvalid(`a value must be JSON, was of type ${typeof value}`)
}

//js: /** @type {(key: string, row: Row) => import('@svc/core/contracts').StoreRecord} */
const recordOf = (key: string, { version, text }: Row): StoreRecord => ({ key, version, value: JSON.parse(text) })

/** Collections, logs and versions of spaces. A batch is done completely or not at all. */
//js: /** @param {import('@svc/storage-kit').Catalog} catalog */
export const createData = (catalog: Catalog) => {
  //js: /** @type {Map<string, Rows>} */
  const tables = new Map<string, Rows>()
  //js: /** @type {Map<string, Streams>} */
  const logs = new Map<string, Streams>()
  //js: /** @type {Map<string, number>} */
  const versions = new Map<string, number>()
  //js: /** @type {(name: string) => Rows} */
  const tableOf = (name: string): Rows => tables.get(name) ?? tables.set(name, new Map()).get(name) ?? new Map()
  //js: /** @type {(name: string) => Streams} */
  const streamsOf = (name: string): Streams => logs.get(name) ?? logs.set(name, new Map()).get(name) ?? new Map()

  //js: /** @type {<K, V>(map: Map<K, V>, key: K, value: V | undefined, undos: (() => void)[]) => void} */
  const put = <K, V>(map: Map<K, V>, key: K, value: V | undefined, undos: (() => void)[]): void => {
    const before = map.get(key)
    undos.push(() => void (before === undefined ? map.delete(key) : map.set(key, before)))
    if (value === undefined) map.delete(key)
    else map.set(key, value)
  }

  //js: /** @type {(op: import('@svc/core/contracts').StoreOp, at: number, texts: readonly string[], undos: (() => void)[]) => number} */
  const run = (op: StoreOp, at: number, texts: readonly string[], undos: (() => void)[]): number => {
    if (op.op === 'append') {
      const before = streamsOf(op.log).get(op.id) ?? []
      expect(at, op.ifLength, before.length)
      if (texts.length > 0) put(streamsOf(op.log), op.id, [...before, ...texts], undos)
      return before.length + texts.length
    }
    if (op.op === 'drop') put(streamsOf(op.log), op.id, undefined, undos)
    if (op.op === 'migrated') put(versions, op.space, op.version, undos)
    if (op.op !== 'put' && op.op !== 'delete') return 0
    const version = tableOf(op.collection).get(op.key)?.version ?? 0
    expect(at, op.ifVersion, version)
    const row = op.op === 'put' ? { version: version + 1, text: texts[0] ?? 'null' } : undefined
    put(tableOf(op.collection), op.key, row, undos)
    return row?.version ?? 0
  }

  return {
    //js: /** @param {import('@svc/core/contracts').Space} space */
    open(space: Space): number {
      catalog.check(space)
      const stored = versions.get(space.name) ?? 0
      if (stored > space.version) throw storeNewer(`the space "${space.name}"`, stored, space.version)
      catalog.declare(space)
      if (stored === 0) versions.set(space.name, space.version)
      return stored
    },
    //js: /** @param {string} collection @param {string} key */
    get(collection: string, key: string): StoreRecord | undefined {
      catalog.collection(collection)
      const row = tableOf(collection).get(key)
      return row && recordOf(key, row)
    },
    //js: /** @param {string} collection @param {import('@svc/core/contracts').RangeQuery} query @returns {import('@svc/core/contracts').RangePage} */
    range(collection: string, query: RangeQuery): RangePage {
      const { paths, span } = checkRange(collection, query, catalog)
      const [low, high] = [byBytes(span.low), span.high === undefined ? undefined : byBytes(span.high)]
      const places = [...tableOf(collection)]
        .map(([key, row]) => ({ key, row, position: sortKey(paths, JSON.parse(row.text), key) }))
        .map(place => ({ ...place, at: byBytes(place.position) }))
        .filter(({ at }) => (span.behind ? at > low : at >= low) && (high === undefined || at < high))
        .sort((a, b) => (a.at < b.at ? -1 : 1) * (query.reverse ? -1 : 1))
      const page = places.slice(0, query.limit)
      const records = page.map(({ key, row }) => recordOf(key, row))
      const last = page.at(-1)
      return places.length > page.length && last ? { records, next: cursorOf(last.position) } : { records }
    },
    //js: /** @param {string} log @param {string} id @param {import('@svc/core/contracts').LogQuery} query */
    read(log: string, id: string, { from, reverse = false, limit }: LogQuery): LogEntry[] {
      const texts = streamsOf(log).get(id) ?? []
      const end = reverse ? Math.min(from ?? texts.length, texts.length) : Math.min((from ?? 1) - 1 + limit, texts.length)
      const start = reverse ? Math.max(0, end - limit) : (from ?? 1) - 1
      const entries = texts.slice(start, end).map((text, at) => ({ seq: start + at + 1, value: JSON.parse(text) as Json }))
      return reverse ? entries.reverse() : entries
    },
    //js: /** @param {readonly import('@svc/core/contracts').StoreOp[]} ops */
    batch(ops: readonly StoreOp[]) {
      let sum = 0
      //js: /** @type {(value: unknown) => string} */
      const sized = (value: unknown) => {
        const text = textOf(value)
        checkSize(text.length, (sum += text.length))
        return text
      }
      const texts = ops.map(op => (op.op === 'put' ? [sized(op.value)] : op.op === 'append' ? op.values.map(sized) : []))
      //js: /** @type {(() => void)[]} */
      const undos: (() => void)[] = []
      try {
        const results = ops.map((op, at) => run(op, at, texts[at] ?? [], undos))
        return { results, changed: ops.flatMap((op, at) => changeOf(op, results[at] ?? 0)) }
      } catch (error) {
        for (const undo of undos.reverse()) undo()
        throw error
      }
    },
  }

  //js: /** @type {(op: import('@svc/core/contracts').StoreOp, version: number) => import('@svc/core/contracts').StoreChange[]} */
  function changeOf(op: StoreOp, version: number): StoreChange[] {
    if ((op.op !== 'put' && op.op !== 'delete') || !catalog.collection(op.collection).watched) return []
    const change = { collection: op.collection, key: op.key, version }
    return [op.op === 'put' ? { ...change, value: JSON.parse(textOf(op.value)) } : change]
  }
}
