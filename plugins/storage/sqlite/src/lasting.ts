import type { DatabaseSync } from 'node:sqlite'
import type { Space } from '@svc/core/contracts'
import { type Batches, createBatches } from './batch.ts'
import { declareSpace, loadCatalog, type StoredCatalog, type StoredCollection } from './catalog.ts'
import { openForWriting } from './file.ts'
import { isTrouble, lastingOf, Refusal } from './trouble.ts'
import { UNASKED } from './wire.ts'

/** A collection, and how many records it has. */
export interface Held {
  readonly collection: string
  readonly records: number
}

/**
 * Takes the records of lasting collections from the former store into a copy of a backup, whose other records stay. Answers what is as the backup has it all
 * the same: there was no former store, or it could not be read, or it is of another version of the data.
 */
export function carryOver(former: DatabaseSync | undefined, copy: string): Held[] {
  using db = openForWriting(copy, { mayMake: false })
  const carried = former ? carryAll(former, db) : new Set<string>()
  db.exec('PRAGMA journal_mode = DELETE')
  return lastingIn(loadCatalog(db))
    .filter(([name]) => !carried.has(name))
    .map(([name, { id }]) => ({ collection: name, records: countOf(db, id) }))
    .filter(({ records }) => records > 0)
}

type Named = readonly [name: string, collection: StoredCollection]

const lastingIn = ({ collections }: StoredCatalog): Named[] => [...collections].filter(([, { lasting }]) => lasting)

const countOf = (db: DatabaseSync, id: number) =>
  Number(db.prepare('SELECT count(*) AS n FROM records WHERE collection = ?').get(id)?.n)

/** The names of those that could be carried, each whole or not at all. */
function carryAll(from: DatabaseSync, to: DatabaseSync): Set<string> {
  try {
    const catalog = loadCatalog(from)
    const done = lastingIn(catalog).filter(one => carry(from, to, one, catalog.spaces))
    return new Set(done.map(([name]) => name))
  } catch (error) {
    return unlessTrouble(error, new Set<string>())
  }
}

function carry(from: DatabaseSync, to: DatabaseSync, one: Named, spaces: StoredCatalog['spaces']): boolean {
  to.exec('BEGIN IMMEDIATE')
  try {
    const version = spaces.get(one[1].space) ?? 0
    const batches = declared(to, one, version)
    if (batches) copyRecords(from, one, batches)
    to.exec('COMMIT')
    return batches !== undefined
  } catch (error) {
    to.exec('ROLLBACK')
    return unlessTrouble(error, false)
  }
}

/** `undefined` where the records of the one would be none of the other's form. */
function declared(db: DatabaseSync, [name, { space, watched, indexes }]: Named, version: number): Batches | undefined {
  const own = Object.fromEntries(indexes.map(({ id, paths }) => [`of_${id}`, paths]))
  const wanted: Space = { name: space, version, collections: { [name]: { indexes: own, watched, lasting: true } } }
  const stored = loadCatalog(db).spaces.get(space)
  if (stored !== undefined && stored !== version) return undefined
  declareSpace(db, wanted)
  return createBatches(db, { catalog: loadCatalog(db), spaces: new Map([[space, wanted]]) })
}

function copyRecords(from: DatabaseSync, [name, { id }]: Named, batches: Batches): void {
  const rows = from.prepare('SELECT key, value FROM records WHERE collection = ?').iterate(id)
  for (const { key, value } of rows) batches.run([['put', name, String(key), String(value), UNASKED]])
}

/** What cannot be read is no reason to restore nothing: it is often why somebody restores. */
function unlessTrouble<T>(error: unknown, otherwise: T): T {
  if (lastingOf(error) === 'full') throw error
  if (error instanceof Refusal || error instanceof SyntaxError || isTrouble(error)) return otherwise
  throw error
}
