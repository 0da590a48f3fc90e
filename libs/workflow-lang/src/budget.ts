import { messageOf } from '@svc/core'
import type { Json } from '@svc/core/contracts'

/**
 * Maximum cost of an expression: about half a second, and enough to copy the output of a node. A unit is an evaluated part, a
 * visited value, or 16 characters. Keys of an object cost more than items of a list.
 */
const MOST = 3_000_000
const PER_UNIT = 16
const PER_KEY = 4

/** Maximum cost of all expressions in a value, which are evaluated together. */
const MOST_TOGETHER = 2 * MOST

let left = Number.POSITIVE_INFINITY
let together = Number.POSITIVE_INFINITY

/** Evaluates with a cost limit. Throws if it was exceeded, even if the expression caught the error. */
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

/** Evaluates several expressions with a common cost limit. */
export function boundedTogether<T>(evaluate: () => T): T {
  together = MOST_TOGETHER
  try {
    return evaluate()
  } finally {
    together = Number.POSITIVE_INFINITY
  }
}

const TOO_LONG = 'it takes too long: it visits too many values'
const tooLong = () => new RangeError(TOO_LONG)
/** Whether an error reports an exceeded cost limit. */
export const isTooLong = (error: unknown) => messageOf(error) === TOO_LONG

/** Adds to the cost. Throws if the limit is exceeded. */
export function spend(units: number): void {
  left -= units
  if (left < 0) throw tooLong()
}

/** Adds to the cost, and returns whether the limit is not exceeded. */
export function go(units: number): boolean {
  left -= units
  return left >= 0
}

/** The cost of a text. */
export const textCost = (text: string) => 1 + text.length / PER_UNIT

/** Adds the cost of a value without its children: its text, or its keys. */
export function payFlat(value: unknown): void {
  if (typeof value === 'string') return spend(textCost(value))
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return spend(1 + PER_KEY * Object.keys(value).length)
  spend(1)
}

/** Adds the cost of a value with its children. */
export function payDeep(value: unknown): void {
  payFlat(value)
  if (typeof value !== 'object' || value === null) return
  for (const item of Array.isArray(value) ? (value as unknown[]) : Object.values(value)) payDeep(item)
}

/** Converts the result of an expression to JSON: integers to numbers, timestamps to ISO 8601, bytes to base64, optionals to their value or null. */
export function toJson(value: unknown): Json {
  if (value === null || value === undefined) return null
  spend(typeof value === 'string' ? textCost(value) : 1)
  if (typeof value === 'bigint') return Number(value)
  if (typeof value !== 'object') return value as Json
  if (Array.isArray(value)) return listOf(value)
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [String(key), toJson(item)]))
  if (isOptional(value)) return toJson(value.hasValue() ? value.value() : null)
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
    ? objectOf(value)
    : toJson((value as { valueOf(): unknown }).valueOf())
}

const isOptional = (value: object): value is { hasValue(): boolean; value(): unknown } =>
  'hasValue' in value && typeof value.hasValue === 'function'

/** Returns unchanged lists and objects without a copy, because most values need no conversion. */
function listOf(list: readonly unknown[]): Json {
  const made = list.map(toJson)
  return made.every((item, at) => item === list[at]) ? (list as Json) : made
}

function objectOf(value: object): Json {
  const entries = Object.entries(value)
  const made = entries.map(([key, entry]) => [key, toJson(entry)] as const)
  return made.every(([, item], at) => item === entries[at]![1]) ? (value as Json) : Object.fromEntries(made)
}
