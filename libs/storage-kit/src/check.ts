import type { CountWindow, IndexPaths, LogQuery, RangeQuery, Space, StoreOp, TextFields } from '@svc/core/contracts'
import { storeInvalid, storeTooLarge, storeUnknown } from './errors.ts'
import { isScalar, type Span, spanAfter, spanOf } from './sort-key.ts'

/** The limits of full-text indexes and searches. */
export const TEXT_LIMITS = Object.freeze({ query: 1000, hits: 100, matches: 10_000, fields: 16, filters: 8 })

/** The limits of every store. Sizes are characters of JSON text. */
export const LIMITS = Object.freeze({
  /** Bytes of UTF-8. */
  key: 1024,
  ops: 10_000,
  value: 16 * 1024 * 1024,
  batch: 64 * 1024 * 1024,
  page: 1000,
  read: 10_000,
  windows: 16,
  /** About thirty years: every store can represent the end as a date. */
  windowMs: 1e12,
})

const whole = (value: unknown, least: number) => Number.isSafeInteger(value) && (value as number) >= least

/** Rejects keys that some store could not hold: empty, too long, with a NUL or half a surrogate pair. */
export function checkKey(what: string, key: unknown): void {
  checkText(what, key)
  const bytes = key.length * MOST_BYTES <= LIMITS.key ? 0 : Buffer.byteLength(key)
  if (bytes > LIMITS.key) throw storeInvalid(`a ${what} has at most ${LIMITS.key} bytes of UTF-8, this one has ${bytes}`)
}

/** Whether a key of this text can be stored. Other texts of clients are not found, in any store. */
export const canExist = (key: string): boolean => key.isWellFormed() && !key.includes('\u0000')

/** The most bytes of UTF-8 that a unit of a JavaScript string takes. */
const MOST_BYTES = 3

/** Checks a key of existing data: earlier versions of svc accepted keys of 1024 characters, which must be readable and deletable. */
function checkText(what: string, key: unknown): asserts key is string {
  if (typeof key !== 'string' || key === '') throw storeInvalid(`a ${what} must be a non-empty string`)
  if (key.length > LIMITS.key) throw storeInvalid(`a ${what} has at most ${LIMITS.key} bytes of UTF-8, this one has more`)
  if (!canExist(key)) throw storeInvalid(`a ${what} must be well-formed Unicode without U+0000`)
}

function checkExpected(op: number, name: string, value: number | undefined): void {
  if (value !== undefined && !whole(value, 0)) throw storeInvalid(`${name} of operation ${op} must be an integer from 0`)
}

const checks: { [K in StoreOp['op']]: (op: Extract<StoreOp, { op: K }>, at: number, catalog: Catalog) => void } = {
  put(op, at, catalog) {
    catalog.collection(op.collection)
    checkKey('key', op.key)
    checkExpected(at, 'ifVersion', op.ifVersion)
  },
  delete(op, at, catalog) {
    catalog.collection(op.collection)
    checkText('key', op.key)
    checkExpected(at, 'ifVersion', op.ifVersion)
  },
  append(op, at, catalog) {
    catalog.log(op.log)
    checkKey('stream id', op.id)
    checkExpected(at, 'ifLength', op.ifLength)
    if (!Array.isArray(op.values)) throw storeInvalid(`values of operation ${at} must be a list`)
  },
  drop(op, _at, catalog) {
    catalog.log(op.log)
    checkText('stream id', op.id)
  },
  migrated(op, at, catalog) {
    catalog.space(op.space)
    if (!whole(op.version, 1)) throw storeInvalid(`version of operation ${at} must be an integer from 1`)
  },
}

/** Rejects a batch that breaks the contract before any operation. */
export function checkOps(ops: readonly StoreOp[], catalog: Catalog): void {
  if (ops.length > LIMITS.ops)
    throw storeTooLarge(`a batch has at most ${LIMITS.ops} operations, this one has ${ops.length}`, 'split it')
  ops.forEach((op, at) => {
    const check = Object.hasOwn(checks, op.op) ? checks[op.op] : undefined
    if (!check) throw storeInvalid(`operation ${at} is of the unknown kind ${JSON.stringify(op.op)}`)
    check(op as never, at, catalog)
  })
}

/** Rejects a value or batch above the limits. */
export function checkSize(value: number, batch: number): void {
  if (value > LIMITS.value)
    throw storeTooLarge(
      `a value has at most ${LIMITS.value} characters of JSON, this one has ${value}`,
      'Split it, or store it elsewhere'
    )
  if (batch > LIMITS.batch)
    throw storeTooLarge(`a batch has at most ${LIMITS.batch} characters of JSON, this one has ${batch}`, 'split it')
}

/** A checked range: the paths of its index (empty for the keys), and the requested part of it. */
export interface CheckedRange {
  readonly paths: IndexPaths
  readonly span: Span
}

/** Checks a range query against the declarations. Throws STORE_UNKNOWN or STORE_INVALID. */
export function checkRange(collection: string, query: RangeQuery, catalog: Catalog): CheckedRange {
  const { indexes } = catalog.collection(collection)
  if (query.index !== undefined && !Object.hasOwn(indexes, query.index))
    throw storeUnknown('index', `${collection}.${query.index}`)
  const paths = query.index === undefined ? [] : indexes[query.index]!
  if (!whole(query.limit, 1) || query.limit > LIMITS.page) throw storeInvalid(`limit must be an integer from 1 to ${LIMITS.page}`)
  checkBounds(query, paths)
  const span = spanOf(query, paths)
  const rest = query.cursor === undefined ? span : spanAfter(span, query.cursor, query.reverse ?? false)
  if (!rest) throw storeInvalid('the cursor does not belong to this query')
  return { paths, span: rest }
}

function checkBounds({ equals = [], from, to }: RangeQuery, paths: IndexPaths): void {
  if (equals.length > paths.length) throw storeInvalid(`equals has ${equals.length} values for ${paths.length} paths`)
  if (!equals.every(isScalar)) throw storeInvalid('equals takes text, numbers, booleans and null')
  const onKey = equals.length === paths.length
  for (const bound of [from, to]) {
    if (bound === undefined) continue
    if (onKey ? typeof bound !== 'string' : !isScalar(bound))
      throw storeInvalid(`from and to must be ${onKey ? 'text: they bound the key' : 'text, a number, a boolean or null'}`)
    if (onKey && !(bound as string).isWellFormed()) throw storeInvalid('from and to must be well-formed Unicode')
  }
}

/** Checks a query of a log. Throws STORE_UNKNOWN or STORE_INVALID. */
export function checkRead(log: string, id: string, query: LogQuery, catalog: Catalog): void {
  catalog.log(log)
  checkText('stream id', id)
  if (!whole(query.limit, 1) || query.limit > LIMITS.read) throw storeInvalid(`limit must be an integer from 1 to ${LIMITS.read}`)
  if (query.from !== undefined && !whole(query.from, 1)) throw storeInvalid('from must be an integer from 1')
}

/** Rejects an invalid lease request. */
export function checkLease(lease: string, ttlMs: number, waitMs = 0, holder = 'x'): void {
  checkKey('lease', lease)
  checkKey('holder', holder)
  if (!whole(ttlMs, 1)) throw storeInvalid('ttlMs must be an integer from 1')
  if (!whole(waitMs, 0)) throw storeInvalid('waitMs must be an integer from 0')
}

/** Rejects an invalid count. */
export function checkCount(key: string, windows: readonly CountWindow[]): void {
  checkKey('key', key)
  if (!Array.isArray(windows) || windows.length === 0 || windows.length > LIMITS.windows)
    throw storeInvalid(`a count takes 1 to ${LIMITS.windows} windows`)
  for (const [at, { ms, limit }] of windows.entries()) {
    if (!whole(ms, 1) || ms > LIMITS.windowMs)
      throw storeInvalid(`ms of window ${at} must be an integer from 1 to ${LIMITS.windowMs}`)
    if (!whole(limit, 0)) throw storeInvalid(`limit of window ${at} must be an integer from 0`)
  }
}

/** A collection as its space declares it. */
export interface Declared {
  readonly space: string
  readonly name: string
  readonly indexes: { readonly [index: string]: IndexPaths }
  readonly text: { readonly [index: string]: TextFields }
  readonly watched: boolean
}

/** The spaces that this process has opened. A store rejects names that are not in it. */
export interface Catalog {
  /** Throws STORE_INVALID for a malformed space or a name of another space. */
  check(space: Space): void
  /** Checks a space and replaces an earlier one of its name. */
  declare(space: Space): void
  space(name: string): Space
  spaces(): Space[]
  collection(name: string): Declared
  /** The name of the space that declares a log. */
  log(name: string): string
}

const NAME = /^[a-z][a-z0-9_]{0,62}$/

/** Creates an empty catalog. */
export function createCatalog(): Catalog {
  const spaces = new Map<string, Space>()
  const collections = new Map<string, Declared>()
  const logs = new Map<string, string>()

  const forget = (space: string) => {
    for (const [name, declared] of collections) if (declared.space === space) collections.delete(name)
    for (const [name, owner] of logs) if (owner === space) logs.delete(name)
  }
  const check = (space: Space) =>
    checkSpace(space, (kind, name) => (kind === 'log' ? logs.get(name) : collections.get(name)?.space))
  return {
    check,
    declare(space) {
      check(space)
      forget(space.name)
      spaces.set(space.name, structuredClone(space))
      for (const declared of declaredBy(space)) collections.set(declared.name, declared)
      for (const log of space.logs ?? []) logs.set(log, space.name)
    },
    space: name => spaces.get(name) ?? fail(storeUnknown('space', name)),
    spaces: () => [...spaces.values()],
    collection: name => collections.get(name) ?? fail(storeUnknown('collection', name)),
    log: name => logs.get(name) ?? fail(storeUnknown('log', name)),
  }
}

function fail(error: Error): never {
  throw error
}

const declaredBy = (space: Space): Declared[] =>
  Object.entries(space.collections ?? {}).map(([name, { indexes = {}, text = {}, watched = false }]) => ({
    space: space.name,
    name,
    indexes: structuredClone(indexes),
    text: structuredClone(text),
    watched,
  }))

function checkSpace(space: Space, owner: (kind: string, name: string) => string | undefined): void {
  checkName('space', space.name)
  if (!Number.isSafeInteger(space.version) || space.version < 1)
    throw storeInvalid(`the version of space "${space.name}" must be an integer from 1`)
  const check = (kind: string, name: string) => {
    checkName(kind, name)
    const by = owner(kind, name)
    if (by !== undefined && by !== space.name)
      throw storeInvalid(`the ${kind} "${name}" of space "${space.name}" belongs to space "${by}"`)
  }
  for (const log of space.logs ?? []) check('log', log)
  for (const { name, indexes, text } of declaredBy(space)) {
    check('collection', name)
    for (const [index, paths] of Object.entries(indexes)) checkIndex(index, paths)
    for (const [index, fields] of Object.entries(text)) checkTextFields(index, fields)
  }
}

function checkName(kind: string, name: string): void {
  if (!NAME.test(name))
    throw storeInvalid(`a ${kind}'s name must be [a-z][a-z0-9_]*, at most 63 characters, was ${JSON.stringify(name)}`)
}

function checkIndex(name: string, paths: IndexPaths): void {
  checkName('index', name)
  if (paths.length === 0 || paths.some(path => path === ''))
    throw storeInvalid(`the index "${name}" needs at least one path, and no path may be empty`)
}

function checkTextFields(name: string, { fields, filters = [] }: TextFields): void {
  checkIndex(name, fields)
  if (fields.length > TEXT_LIMITS.fields || filters.length > TEXT_LIMITS.filters || filters.some(path => path === ''))
    throw storeInvalid(
      `the text index "${name}" has at most ${TEXT_LIMITS.fields} fields and ${TEXT_LIMITS.filters} filters, and no path may be empty`
    )
}
