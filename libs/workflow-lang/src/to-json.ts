import type { Json } from '@svc/core/contracts'
import { spend, textCost } from './budget.ts'

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
