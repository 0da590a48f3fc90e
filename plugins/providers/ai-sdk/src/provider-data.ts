import type { Json } from '@svc/core/contracts'
import type { Metadata } from './sdk.ts'

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether a value is what the SDK takes as options of a part: an object by provider, then by key. */
export const isMetadata = (value: unknown): value is Metadata => isObject(value) && Object.values(value).every(isObject)

/** Plain data of what a package tells about a part; nothing where it tells nothing. Packages leave `undefined` in it, and could leave anything. */
export function plainMetadata(metadata: Metadata | undefined): Metadata | undefined {
  if (metadata === undefined || Object.values(metadata).every(one => !isObject(one) || Object.keys(one).length === 0))
    return undefined
  const plain: unknown = JSON.parse(JSON.stringify(metadata))
  return isMetadata(plain) ? plain : undefined
}

/** Merges both by key; the later value wins. */
export function mergeMetadata(before: Metadata | undefined, after: Metadata | undefined): Metadata | undefined {
  if (before === undefined || after === undefined) return after ?? before
  const names = Object.keys({ ...before, ...after })
  return Object.fromEntries(names.map(name => [name, { ...before[name], ...after[name] }]))
}

/** Text has no place for opaque data of its own: it goes with the end of the answer, in the order of the texts. */
export const writeTextData = (texts: readonly (Metadata | undefined)[]): Json | undefined =>
  texts.some(one => one !== undefined) ? { texts: texts.map(one => (one ?? null) as Json) } : undefined

/** The data of each of `count` texts; none at all when they are no longer those that were written. */
export function readTextData(data: Json | undefined, count: number): readonly (Json | undefined)[] {
  const texts = isObject(data) ? data.texts : undefined
  return Array.isArray(texts) && texts.length === count ? (texts as Json[]) : []
}
