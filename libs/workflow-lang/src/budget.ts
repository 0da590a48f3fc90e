import { messageOf } from '@svc/core'
import type { Json } from '@svc/core/contracts'

/**
 * What an expression may cost: about half a second at worst, and enough to copy what a node may answer. One unit is a part that is evaluated once, a value
 * that is looked at, or 16 characters; the keys of an object take longer than the items of a list.
 */
const MOST = 3_000_000
const PER_UNIT = 16
const PER_KEY = 4

/** What all expressions of one value may cost together: they are evaluated at once. */
const MOST_TOGETHER = 2 * MOST

let left = Number.POSITIVE_INFINITY
let together = Number.POSITIVE_INFINITY

/** Evaluates with a bound. Throws where that did not do, whatever the expression made of it. */
export function bounded<T>(evaluate: () => T): T {
  const most = Math.min(MOST, together)
  left = most
  try {
    const value = evaluate()
    if (left < 0) throw tooLong()
    return value
  } catch (error) {
    throw left < 0 ? tooLong() : error
  } finally {
    together -= most - Math.max(left, 0)
    left = Number.POSITIVE_INFINITY
  }
}

/** Evaluates what holds many expressions with one bound for all. */
export function boundedTogether<T>(evaluate: () => T): T {
  together = MOST_TOGETHER
  try {
    return evaluate()
  } finally {
    together = Number.POSITIVE_INFINITY
  }
}

const TOO_LONG = 'it takes too long: it looks at too much'
const tooLong = () => new RangeError(TOO_LONG)
/** Whether an error says that. */
export const isTooLong = (error: unknown) => messageOf(error) === TOO_LONG

/** One more thing was done. Throws when it was too much. */
export function spend(units: number): void {
  left -= units
  if (left < 0) throw tooLong()
}

/** The same, and answers whether there is something left. */
export function go(units: number): boolean {
  left -= units
  return left >= 0
}

/** What a text costs. */
export const textCost = (text: string) => 1 + text.length / PER_UNIT

/** Pays for looking at a value as such: its text, its keys. */
export function payFlat(value: unknown): void {
  if (typeof value === 'string') return spend(textCost(value))
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return spend(1 + PER_KEY * Object.keys(value).length)
  spend(1)
}

/** Pays for looking at a value whole. */
export function payDeep(value: unknown): void {
  payFlat(value)
  if (typeof value !== 'object' || value === null) return
  for (const one of Array.isArray(value) ? (value as unknown[]) : Object.values(value)) payDeep(one)
}

/** What an expression answers, as JSON has it: integers are numbers, points in time ISO 8601, bytes base64, an optional its value or null. */
export function toJson(value: unknown): Json {
  if (value === null || value === undefined) return null
  spend(typeof value === 'string' ? textCost(value) : 1)
  if (typeof value === 'bigint') return Number(value)
  if (typeof value !== 'object') return value as Json
  if (Array.isArray(value)) return listOf(value)
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, one]) => [String(key), toJson(one)]))
  if (isOptional(value)) return toJson(value.hasValue() ? value.value() : null)
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
    ? objectOf(value)
    : toJson((value as { valueOf(): unknown }).valueOf())
}

const isOptional = (value: object): value is { hasValue(): boolean; value(): unknown } =>
  'hasValue' in value && typeof value.hasValue === 'function'

/** Most lists and objects come from a run as they are: those are not copied. */
function listOf(list: readonly unknown[]): Json {
  const made = list.map(toJson)
  return made.every((one, at) => one === list[at]) ? (list as Json) : made
}

function objectOf(value: object): Json {
  const entries = Object.entries(value)
  const made = entries.map(([key, one]) => [key, toJson(one)] as const)
  return made.every(([, one], at) => one === entries[at]![1]) ? (value as Json) : Object.fromEntries(made)
}
