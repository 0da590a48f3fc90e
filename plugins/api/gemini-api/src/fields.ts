import type { Json } from '@svc/core/contracts'
import { invalid } from './errors.ts'

/** An object of the request. */
export type Fields = { readonly [name: string]: Json | undefined }

export const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * What the translation of a request cannot carry. A model server that speaks this API gets the request as it is, so both count only
 * for other models.
 */
export class Losses {
  /** Fields and kinds of content that are left out. */
  readonly dropped = new Set<string>()
  /** The first field that can be neither carried nor left out, or whose value only such a server can know. */
  refusal: Error | undefined = undefined

  drop(name: string): void {
    if (this.dropped.size < MOST_DROPPED) this.dropped.add(name)
  }

  refuse(field: string, reason: string): void {
    this.refusal ??= invalid(field, reason)
    this.drop(field)
  }

  /** Drops the fields of an object that are not known, in the name of their place. */
  dropUnknown(fields: Fields, known: ReadonlySet<string>, place: string): void {
    for (const name in fields)
      if (!known.has(camelCased(name)) && fields[name] !== undefined && fields[name] !== null) this.drop(`${place}.${name}`)
  }
}

/** Names beyond are not listed. */
const MOST_DROPPED = 100

/** The API takes each name in two forms: `systemInstruction` and `system_instruction`. */
export const camelCased = (name: string): string => name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
const snakeCased = (name: string): string => name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

/** A field with a value, under its name in camelCase or snake_case. `null` counts as absent. */
export const given = (fields: Fields, name: string): Json | undefined => fields[name] ?? fields[snakeCased(name)] ?? undefined

export function objectAt(value: Json | undefined, path: string): Fields {
  if (!isFields(value)) throw invalid(path, 'must be an object')
  return value
}

export function listAt(value: Json | undefined, path: string): readonly Json[] {
  if (!Array.isArray(value)) throw invalid(path, 'must be a list')
  return value
}

export function textAt(value: Json | undefined, path: string): string {
  if (typeof value !== 'string') throw invalid(path, 'must be a string')
  return value
}

/** A string that is not empty and not longer than this. */
export function nameAt(value: Json | undefined, path: string, longest = 256): string {
  const name = textAt(value, path)
  if (name === '' || name.length > longest) throw invalid(path, `must have 1 to ${longest} characters`)
  return name
}

export function integerAt(value: Json | undefined, path: string, least: number, most = Number.MAX_SAFE_INTEGER): number {
  if (Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most) return Number(value)
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`
  throw invalid(path, `must be an integer ${range}`)
}

export function numberAt(value: Json | undefined, path: string, least: number, most: number): number {
  if (typeof value !== 'number' || !(value >= least && value <= most))
    throw invalid(path, `must be a number from ${least} to ${most}`)
  return value
}

export function flagAt(value: Json | undefined, path: string): boolean {
  if (typeof value !== 'boolean') throw invalid(path, 'must be true or false')
  return value
}

/** A word of an enumeration in upper case. The API takes them in any case. */
export const wordAt = (value: Json | undefined, path: string): string => textAt(value, path).toUpperCase()

/** Text of a client in a message. */
export const shown = (text: string) => (text.length > 100 ? `${text.slice(0, 100)}…` : text)
