import { hash } from 'node:crypto'
import type { TextFields, TextQuery } from '@svc/core/contracts'
import { canExist, type Catalog, TEXT_LIMITS } from './check.ts'
import { storeInvalid, storeUnknown } from './errors.ts'
import { isScalar, prefixOf } from './sort-key.ts'
import { filterToken, type ParsedQuery, parseQuery } from './text.ts'

/** The place of a hit in the order of a search: by score, the best first, then by key. */
export interface HitPlace {
  readonly score: number
  readonly key: string
}

/** A checked search. */
export interface CheckedSearch {
  readonly fields: TextFields
  readonly parsed: ParsedQuery
  /** The token that entries must have among their filters. */
  readonly filter: string | undefined
  /** The last hit of the previous page. */
  readonly after: HitPlace | undefined
  /** The cursor behind a hit. */
  readonly cursorOf: (place: HitPlace) => string
}

/** Checks a search against the declarations. Throws STORE_UNKNOWN or STORE_INVALID. */
export function checkSearch(
  collection: string,
  { index, query, equals = [], limit, cursor }: TextQuery,
  catalog: Catalog
): CheckedSearch {
  const fields = fieldsOf(collection, index, catalog)
  checkParts({ query, equals, limit }, fields)
  const parsed = parseQuery(query)
  // the same words in another way of writing are the same search
  const digest = hash('sha256', JSON.stringify([collection, index, parsed, prefixOf(equals)])).slice(0, 16)
  return {
    fields,
    parsed,
    filter: equals.length === 0 ? undefined : filterToken(equals),
    after: cursor === undefined ? undefined : placeIn(cursor, digest),
    cursorOf: ({ score, key }) => Buffer.from(JSON.stringify([digest, score, key])).toString('base64url'),
  }
}

function fieldsOf(collection: string, index: string, catalog: Catalog): TextFields {
  const { text } = catalog.collection(collection)
  if (typeof index !== 'string' || !Object.hasOwn(text, index)) throw storeUnknown('text index', `${collection}.${index}`)
  return text[index]!
}

function checkParts(
  { query, equals = [], limit }: Pick<TextQuery, 'query' | 'equals' | 'limit'>,
  { filters = [] }: TextFields
): void {
  if (typeof query !== 'string' || query.length > TEXT_LIMITS.query)
    throw storeInvalid(`query must be a text of at most ${TEXT_LIMITS.query} characters`)
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > TEXT_LIMITS.hits)
    throw storeInvalid(`limit must be an integer from 1 to ${TEXT_LIMITS.hits}`)
  if (!Array.isArray(equals) || equals.length > filters.length)
    throw storeInvalid(`equals must be a list of at most ${filters.length} values`)
  if (!equals.every(isScalar)) throw storeInvalid('equals takes text, numbers, booleans and null')
}

function placeIn(cursor: string, digest: string): HitPlace {
  try {
    const [of, score, key] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[]
    if (of === digest && Number.isFinite(score) && typeof key === 'string' && canExist(key))
      return { score: score as number, key }
  } catch {
    // reported below
  }
  throw storeInvalid('the cursor does not belong to this search')
}
