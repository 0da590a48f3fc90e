import { randomUUID } from 'node:crypto'
import type { IndexPaths, Json, RangeQuery } from '@svc/core/contracts'

// Every entry of an index has a position: one part for each path, then the key. A position is the bytes of UTF-8 of the text that
// these functions return; none is NUL. Their order is the order of the contract. Any store that compares bytes (SQLite, `bytea` of
// PostgreSQL, a sorted list) has it. Positions have no greatest length: an indexed text can be as long as a value.

/** Types that an index sorts by; other values count as null. */
export type Scalar = null | boolean | number | string

/**
 * Part of an index: the positions from `low` (behind it, with `behind`) to before `high`, by their bytes. Without `high` it has no
 * end.
 */
export interface Span {
  readonly low: string
  /** Whether the position `low` itself is excluded: it is the last of the previous page. */
  readonly behind?: true
  readonly high?: string
}

const END = '\u0001'
// oxlint-disable-next-line no-control-regex -- these three are what is escaped
const LOW = /[\u0000-\u0002]/g
const ESCAPED: Record<string, string> = { '\u0000': '\u0002\u0002', '\u0001': '\u0002\u0003', '\u0002': '\u0002\u0004' }
const bits = new DataView(new ArrayBuffer(8))

const hex = (word: number) => (word >>> 0).toString(16).padStart(8, '0')

/** A double as 16 hexadecimal digits that sort like the numbers: flips the sign bit, and all bits of negative numbers. */
function numberPart(value: number): string {
  bits.setFloat64(0, value === 0 ? 0 : value)
  const head = bits.getUint32(0)
  const tail = bits.getUint32(4)
  return head >>> 31 ? hex(~head) + hex(~tail) : hex(head ^ 0x80000000) + hex(tail)
}

/** One value as a part of a sort key. No part is a prefix of another one. */
function part(value: Scalar): string {
  if (value === null) return '0'
  if (typeof value === 'boolean') return value ? '2' : '1'
  if (typeof value === 'number') return `3${numberPart(value)}`
  return `4${value.toWellFormed().replace(LOW, char => ESCAPED[char]!)}${END}`
}

export const isScalar = (value: unknown): value is Scalar =>
  value === null || typeof value === 'boolean' || typeof value === 'string' || Number.isFinite(value)

/** The value at a path; null if it is absent or no scalar. */
export function scalarAt(value: unknown, path: string): Scalar {
  let here: unknown = value
  for (const step of stepsOf(path)) {
    if (typeof here !== 'object' || here === null || Array.isArray(here) || !Object.hasOwn(here, step)) return null
    here = (here as Record<string, unknown>)[step]
  }
  return isScalar(here) ? here : null
}

const steps = new Map<string, readonly string[]>()
/** The steps of a path. */
export function stepsOf(path: string): readonly string[] {
  let known = steps.get(path)
  if (!known) steps.set(path, (known = path.split('.')))
  return known
}

/** The beginning of all positions with these first values. */
export const prefixOf = (values: readonly unknown[]): string => (values as readonly Scalar[]).map(part).join('')

/** The position of a record in an index. */
export function sortKey(paths: IndexPaths, value: Json, key: string): string {
  let text = ''
  for (const path of paths) text += part(scalarAt(value, path))
  return text + key
}

/** The first text after all texts with `prefix`, whose last character is never the last of Unicode. */
const behind = (prefix: string) => prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)

/** The part of an index (or of the keys, without paths) for a checked query. */
export function spanOf(query: RangeQuery, paths: IndexPaths): Span {
  const equals = (query.equals ?? []) as readonly Scalar[]
  const prefix = prefixOf(equals)
  const next = (value: Json) => prefix + (equals.length === paths.length ? (value as string) : part(value as Scalar))
  const high = query.to === undefined ? (prefix && behind(prefix)) || undefined : next(query.to)
  return { low: query.from === undefined ? prefix : next(query.from), ...(high === undefined ? {} : { high }) }
}

/** The rest of a span after a cursor; undefined if the cursor does not belong to this query. */
export function spanAfter(span: Span, cursor: string, reverse: boolean): Span | undefined {
  const position = Buffer.from(cursor, 'base64url').toString()
  // no position contains NUL, which PostgreSQL accepts in no text
  if (cursorOf(position) !== cursor || position.includes('\u0000') || !isWithin(span, position)) return undefined
  return reverse ? { low: span.low, high: position } : { ...span, low: position, behind: true }
}

/** The cursor for callers. */
export const cursorOf = (position: string): string => Buffer.from(position).toString('base64url')

// A cursor can come from outside: outside of the span, it would show records that `equals` excludes.
const isWithin = ({ low, high }: Span, position: string) =>
  byBytes(low) <= byBytes(position) && (high === undefined || byBytes(position) < byBytes(high))

const WIDE = /[\ud800-\uffff]/
/** A text whose order by JavaScript's `<` equals the order of the argument by UTF-8 bytes: moves surrogates behind U+FFFF. */
export function byBytes(text: string): string {
  if (!WIDE.test(text)) return text
  let out = ''
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    out += String.fromCharCode(unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit)
  }
  return out
}

/**
 * Creates a UUID of version 7 (RFC 9562): 48 bits of time in milliseconds and 74 random bits. Ids of the same time are adjacent
 * in the indexes of a store; with random ids, each new record is a page more to write.
 */
export function timelyId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

/** When an id was made, in Unix milliseconds; NaN for an id that `timelyId` has not made. */
export function timeOf(id: string): number {
  const [, high, low] = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/.exec(id) ?? []
  return high === undefined ? Number.NaN : Number.parseInt(`${high}${low}`, 16)
}
