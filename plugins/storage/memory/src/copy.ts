import { storeInvalid } from '@svc/storage-kit'
import type { Json } from '@svc/core/contracts'

/** A frozen copy of a value, and its approximate size in bytes. */
export interface StoredValue {
  readonly value: Json
  readonly bytes: number
}

/** An entry of a log as text: it is rarely read, and the garbage collector has only one string to follow. */
export interface StoredText {
  readonly text: string
  readonly bytes: number
}

export function keepText(value: unknown): StoredText {
  try {
    const text = JSON.stringify(value) as string | undefined
    if (text === undefined) throw notJson(value)
    return { text, bytes: text.length }
  } catch (error) {
    if (error instanceof RangeError) throw tooDeep()
    // contains a bigint or a cycle
    throw error instanceof TypeError ? notJson(value) : error
  }
}

const notJson = (value: unknown) => storeInvalid(`a value must be JSON, was of type ${typeof value}`)
const tooDeep = () => storeInvalid('the value is nested too deeply')

const NODE = 16

/**
 * Copies a value as JSON would (drops absent properties, NaN becomes null) and freezes it, so that reads can return it as it
 * is.
 */
export function keep(value: unknown): StoredValue {
  const tally = { bytes: 0 }
  try {
    return { value: copy(value, tally), bytes: tally.bytes }
  } catch (error) {
    if (error instanceof RangeError) throw tooDeep()
    throw error
  }
}

function copy(value: unknown, tally: { bytes: number }): Json {
  tally.bytes += NODE
  if (typeof value === 'string') {
    tally.bytes += value.length
    return value
  }
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : null
  if (typeof value === 'boolean' || value === null) return value
  if (typeof value !== 'object') throw notJson(value)
  return Array.isArray(value) ? copyList(value, tally) : copyObject(value, tally)
}

function copyList(list: readonly unknown[], tally: { bytes: number }): Json {
  const out: Json[] = []
  for (const item of list) out.push(item === undefined ? null : copy(item, tally))
  return Object.freeze(out)
}

function copyObject(source: object, tally: { bytes: number }): Json {
  const out: Record<string, Json> = {}
  for (const key of Object.keys(source)) {
    const item = (source as Record<string, unknown>)[key]
    if (item === undefined) continue
    tally.bytes += key.length
    if (key === '__proto__') Object.defineProperty(out, key, { value: copy(item, tally), enumerable: true })
    else out[key] = copy(item, tally)
  }
  return Object.freeze(out)
}
