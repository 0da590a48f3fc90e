const MATCH = Symbol('match')

/** Says what is wrong with a value; nothing when it fits. */
export interface Matcher {
  readonly [MATCH]: (value: unknown, path: string) => readonly string[]
}

type Word = 'string' | 'text' | 'number' | 'integer' | 'boolean' | 'object' | 'array'
const FITS: Readonly<Record<Word, (value: unknown) => boolean>> = {
  string: value => typeof value === 'string',
  text: value => typeof value === 'string' && value.trim() !== '',
  number: value => typeof value === 'number',
  integer: value => Number.isInteger(value),
  boolean: value => typeof value === 'boolean',
  object: value => typeof value === 'object' && value !== null && !Array.isArray(value),
  array: value => Array.isArray(value),
}

const matcher = (wanted: string, fits: (value: unknown) => boolean): Matcher => ({
  [MATCH]: (value, path) => (fits(value) ? [] : [`${path} must be ${wanted}, was ${shown(value)}`]),
})

/** Any value of this kind; `text` is one that is not blank. */
export const any = (word: Word): Matcher => matcher(`any ${word}`, FITS[word])
export const matching = (pattern: RegExp): Matcher =>
  matcher(`text like ${pattern}`, value => typeof value === 'string' && pattern.test(value))
export const oneOf = (...allowed: readonly unknown[]): Matcher =>
  matcher(`one of ${shown(allowed)}`, value => allowed.includes(value))
export const not = (unwanted: unknown): Matcher => matcher(`not ${shown(unwanted)}`, value => !Object.is(value, unwanted))
export const from = (least: number, most = Number.POSITIVE_INFINITY): Matcher =>
  matcher(`a number from ${least} to ${most}`, value => typeof value === 'number' && value >= least && value <= most)
/** ISO 8601 in UTC. */
export const time: Matcher = matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/)
/** Not there at all. */
export const absent: Matcher = matcher('absent', value => value === undefined)
/** Text in which this does not occur. */
export const without = (pattern: RegExp): Matcher =>
  matcher(`text without ${pattern}`, value => typeof value === 'string' && !pattern.test(value))

/** These members and no others. */
export const exact = (expected: Readonly<Record<string, unknown>>): Matcher => ({
  [MATCH]: (value, path) => {
    const more = FITS.object(value) ? Object.keys(value as object).filter(name => !Object.hasOwn(expected, name)) : []
    return [...compare(expected, value, path), ...more.map(name => `${path}.${name} must not be there`)]
  },
})

/** A list in which every item fits, of this length where one is told. */
export const list = (item: unknown, length?: number): Matcher => ({
  [MATCH]: (value, path) => {
    if (!Array.isArray(value)) return [`${path} must be a list, was ${shown(value)}`]
    const right = length === undefined || value.length === length
    return [
      ...(right ? [] : [`${path} must have ${length} items, has ${value.length}`]),
      ...value.flatMap((entry, at) => compare(item, entry, `${path}[${at}]`)),
    ]
  },
})

/** A list that has an item for each of these, in any place. */
export const including = (...items: readonly unknown[]): Matcher => ({
  [MATCH]: (value, path) => {
    if (!Array.isArray(value)) return [`${path} must be a list, was ${shown(value)}`]
    const missing = items.filter(item => !value.some(entry => compare(item, entry, path).length === 0))
    return missing.map(item => `${path} must have an item like ${shown(item)}`)
  },
})

/** What is wrong with `value`: members that `expected` does not name may be there, lists must have the same length. */
export function compare(expected: unknown, value: unknown, path: string): readonly string[] {
  if (isMatcher(expected)) return expected[MATCH](value, path)
  if (Array.isArray(expected)) return compareLists(expected, value, path)
  if (typeof expected === 'object' && expected !== null) return compareMembers(expected, value, path)
  return Object.is(expected, value) ? [] : [`${path} must be ${shown(expected)}, was ${shown(value)}`]
}

function compareLists(expected: readonly unknown[], value: unknown, path: string): readonly string[] {
  if (!Array.isArray(value) || value.length !== expected.length)
    return [`${path} must be a list of ${expected.length}, was ${shown(value)}`]
  return expected.flatMap((item, at) => compare(item, value[at], `${path}[${at}]`))
}

function compareMembers(expected: object, value: unknown, path: string): readonly string[] {
  if (!FITS.object(value)) return [`${path} must be an object, was ${shown(value)}`]
  const members = value as Readonly<Record<string, unknown>>
  return Object.entries(expected).flatMap(([name, item]) =>
    compare(item, Object.hasOwn(members, name) ? members[name] : undefined, `${path}.${name}`)
  )
}

const isMatcher = (value: unknown): value is Matcher => typeof value === 'object' && value !== null && MATCH in value

/** A value in few words. */
export function shown(value: unknown, most = 300): string {
  const text = JSON.stringify(value) ?? typeof value
  return text.length > most ? `${text.slice(0, most)}…` : text
}
