import type { IndexPaths, Json } from '@svc/core/contracts'
import { type Span, sortKey } from '@svc/storage-kit'

/** A row of `places`. */
export type PlaceRow = readonly [idx: number, head: string, tail: string, record: number]

/** Characters of a head: at most 2000 bytes, because an entry of a B-tree in PostgreSQL has at most 2704. */
const HEAD = 500

/**
 * Cuts a position after a number of characters. By characters, not by bytes: positions whose first characters are equal are then
 * equal in their heads, so the order of head and tail is the order of the whole.
 */
export function cutPosition(position: string): readonly [head: string, tail: string] {
  if (position.length <= HEAD) return [position, '']
  let at = 0
  for (let count = 0; count < HEAD && at < position.length; count++) at += position.codePointAt(at)! > 0xffff ? 2 : 1
  return [position.slice(0, at), position.slice(at)]
}

/** The position of a record in an index, in two parts. */
export const placeOf = (paths: IndexPaths, value: Json, key: string): readonly [head: string, tail: string] =>
  cutPosition(sortKey(paths, value, key))

/**
 * The same part of an index, without NUL, which PostgreSQL accepts in no text. No position contains it, so the first one from `a\0b`
 * is the first one behind `a`.
 */
export function withoutNul({ low, behind, high }: Span): Span {
  const [from, to] = [low.indexOf('\0'), high?.indexOf('\0') ?? -1]
  return {
    low: from < 0 ? low : low.slice(0, from),
    ...(behind || from >= 0 ? { behind: true } : {}),
    ...(high === undefined ? {} : { high: to < 0 ? high : `${high.slice(0, to)}\u0001` }),
  }
}
