import type { Json, Space, TextFields } from '@svc/core/contracts'
import { storeInvalid, storeNewer } from '@svc/storage-kit'
import {
  indexesToDrop,
  isDeclared,
  type StoredCatalog as Catalog,
  type StoredCollection as Collection,
  textSpec,
} from '@svc/storage-kit/stored-catalog'
import type { Line, Statement, Step } from './line.ts'
import { type PlaceRow, placeOf } from './places.ts'
import { quoted } from './schema.ts'
import { type TextRow, textRow } from './text.ts'

export interface StoredCollection extends Collection {
  readonly name: string
}

/** The declarations of all processes in the database. */
export interface StoredCatalog extends Catalog<StoredCollection> {
  /** Increases with each change. */
  readonly version: number
}

const ORDER = 'order'
const TEXT = 'text'

/** One statement, so that all of it is of one moment. */
const catalogIn = (s: string): Statement => ({
  name: 'catalog',
  text: `SELECT (SELECT value FROM ${s}.meta WHERE name = 'catalog') AS version,
    (SELECT coalesce(json_agg(json_build_array(name, version)), '[]') FROM ${s}.spaces) AS spaces,
    (SELECT coalesce(json_agg(json_build_array(name, id, space, watched, lasting)), '[]') FROM ${s}.collections) AS collections,
    (SELECT coalesce(json_agg(json_build_array(collection, id, kind, spec) ORDER BY id), '[]') FROM ${s}.indexes) AS indexes,
    (SELECT coalesce(json_agg(json_build_array(name, id, space)), '[]') FROM ${s}.logs) AS logs`,
})

/** Reads the catalog. */
export async function loadCatalog(line: Pick<Line, 'one'>, schema: string): Promise<StoredCatalog> {
  const row = (await line.one(catalogIn(quoted(schema)))).rows[0]!
  const indexes = Map.groupBy(row.indexes as [number, number, string, string][], ([collection]) => collection)
  const of = <T>(collection: number, kind: string, make: (id: number, spec: unknown) => T): T[] =>
    (indexes.get(collection) ?? []).filter(item => item[2] === kind).map(([, id, , spec]) => make(id, JSON.parse(spec)))
  const collections = (row.collections as [string, number, string, boolean, boolean][]).map(
    ([name, id, space, watched, lasting]) => {
      const texts = of(id, TEXT, (text, fields) => ({ id: text, fields: fields as TextFields }))
      const orders = of(id, ORDER, (index, paths) => ({ id: index, paths: paths as string[] }))
      return [name, { id, name, space, watched, lasting, indexes: orders, texts }] as const
    }
  )
  return {
    version: Number(row.version),
    spaces: new Map(row.spaces as [string, number][]),
    collections: new Map(collections),
    logs: new Map((row.logs as [string, number, string][]).map(([name, id, space]) => [name, { id, space }])),
  }
}

/** The version of a space's data; 0 for a new space. Throws STORE_NEWER. */
export function versionOf(catalog: StoredCatalog, space: Space): number {
  const stored = catalog.spaces.get(space.name) ?? 0
  if (stored > space.version) throw storeNewer(`the space "${space.name}"`, stored, space.version)
  return stored
}

/**
 * Writes a space's declaration and builds its new indexes, inside a transaction that no write runs beside. Returns the version of
 * its data before.
 */
export async function declareSpace(line: Line, schema: string, space: Space): Promise<number> {
  const s = quoted(schema)
  const catalog = await loadCatalog(line, schema)
  const stored = versionOf(catalog, space)
  if (isDeclared(catalog, space)) return stored
  if (stored === 0) await line.one({ text: `INSERT INTO ${s}.spaces VALUES ($1, $2)` }, [space.name, space.version])
  for (const [name, declared] of Object.entries(space.collections ?? {})) {
    checkOwner('collection', name, space.name, catalog.collections.get(name)?.space)
    const { watched = false, lasting = false } = declared
    await line.one(
      {
        text: `INSERT INTO ${s}.collections(name, space, watched, lasting) VALUES ($1, $2, $3, $4)
          ON CONFLICT (name) DO UPDATE SET watched = excluded.watched, lasting = excluded.lasting`,
      },
      [name, space.name, watched, lasting]
    )
    const { rows } = await line.one({ text: `SELECT id FROM ${s}.collections WHERE name = $1` }, [name])
    const id = Number(rows[0]!.id)
    for (const paths of Object.values(declared.indexes ?? {}))
      await declareIndex(line, s, id, { kind: ORDER, spec: JSON.stringify(paths) })
    for (const fields of Object.values(declared.text ?? {}))
      await declareIndex(line, s, id, { kind: TEXT, spec: textSpec(fields) })
  }
  for (const log of space.logs ?? []) {
    checkOwner('log', log, space.name, catalog.logs.get(log)?.space)
    await line.one({ text: `INSERT INTO ${s}.logs(name, space) VALUES ($1, $2) ON CONFLICT DO NOTHING` }, [log, space.name])
  }
  await line.one(nextVersion(s))
  return stored
}

/** Takes all declarations back, inside a transaction that no write runs beside. The store must be without data. */
export async function forgetSpaces(line: Line, schema: string): Promise<void> {
  const s = quoted(schema)
  for (const table of ['feed', 'indexes', 'collections', 'logs', 'spaces']) await line.one({ text: `DELETE FROM ${s}.${table}` })
  await line.one(nextVersion(s))
}

const nextVersion = (s: string): Statement => ({ text: `UPDATE ${s}.meta SET value = value + 1 WHERE name = 'catalog'` })

function checkOwner(kind: string, name: string, space: string, by: string | undefined): void {
  if (by !== undefined && by !== space) throw storeInvalid(`the ${kind} "${name}" of space "${space}" belongs to space "${by}"`)
}

async function declareIndex(
  line: Line,
  s: string,
  collection: number,
  { kind, spec }: { readonly kind: string; readonly spec: string }
): Promise<void> {
  const made = await line.one(
    { text: `INSERT INTO ${s}.indexes(collection, kind, spec) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING id` },
    [collection, kind, spec]
  )
  const id = made.rows[0]?.id
  if (id === undefined) return
  for (let after: string | undefined; ; ) {
    const { rows } = await line.one(
      {
        text: `SELECT id, key, value FROM ${s}.records WHERE collection = $1 AND ($2::text IS NULL OR key > $2) ORDER BY key LIMIT 500`,
      },
      [collection, after ?? null]
    )
    if (rows.length === 0) return
    const items = rows.map(row => ({
      record: Number(row.id),
      key: String(row.key),
      value: JSON.parse(row.value as string) as Json,
    }))
    const index = Number(id)
    const step =
      kind === ORDER
        ? insertPlaces(
            s,
            items.map(item => [index, ...placeOf(JSON.parse(spec) as string[], item.value, item.key), item.record])
          )
        : insertTexts(
            s,
            items
              .map(item => textRow({ id: index, fields: JSON.parse(spec) as TextFields }, item.record, item.value))
              .filter(row => row !== undefined)
          )
    await line.run([step])
    after = items.at(-1)!.key
  }
}

const column = <T extends readonly unknown[]>(rows: readonly T[], at: keyof T & number) => rows.map(row => row[at])

export const insertPlaces = (s: string, rows: readonly PlaceRow[]): Step => [
  {
    name: 'places_in',
    text: `INSERT INTO ${s}.places SELECT * FROM unnest($1::integer[], $2::text[], $3::text[], $4::bigint[])`,
  },
  [column(rows, 0), column(rows, 1), column(rows, 2), column(rows, 3)],
]

export const insertTexts = (s: string, rows: readonly TextRow[]): Step => [
  {
    name: 'texts_in',
    text: `INSERT INTO ${s}.texts SELECT idx, record, words, body, lexemes::tsvector
      FROM unnest($1::integer[], $2::bigint[], $3::integer[], $4::text[], $5::text[]) AS u(idx, record, words, body, lexemes)`,
  },
  [column(rows, 0), column(rows, 1), column(rows, 2), column(rows, 3), column(rows, 4)],
]

/** Writes a space's new version, and drops indexes that its declaration no longer names. */
export function migratedSteps(schema: string, catalog: StoredCatalog, space: Space, version: number): Step[] {
  const s = quoted(schema)
  const steps: Step[] = [
    [{ text: `UPDATE ${s}.spaces SET version = $2 WHERE name = $1` }, [space.name, version]],
    [nextVersion(s)],
  ]
  if (version !== space.version) return steps
  const { indexes, texts } = indexesToDrop(catalog, space)
  const dropped = [...indexes, ...texts]
  if (dropped.length > 0)
    for (const [table, key] of [
      ['places', 'idx'],
      ['texts', 'idx'],
      ['indexes', 'id'],
    ])
      steps.push([{ text: `DELETE FROM ${s}.${table} WHERE ${key} = ANY($1::integer[])` }, [dropped]])
  return steps
}
