import type { Json } from '@svc/core/contracts'

/** An argument that a stateless HTTP request repeats in the header `Mcp-Param-<name>`. */
export interface ParamHeader {
  readonly path: readonly string[]
  readonly name: string
}

type Schema = { readonly [key: string]: Json | undefined }

const KEY = 'x-mcp-header'
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TYPES = new Set<unknown>(['string', 'integer', 'boolean'])

/** The declarations in an input schema (`"x-mcp-header": "Region"` at a property); text where one is not as the protocol wants it: such a tool must not be used. */
export function headersOf(schema: Schema): readonly ParamHeader[] | string {
  const found: ParamHeader[] = []
  const fault = visit(schema, [], true, found)
  if (fault !== undefined) return fault
  const names = found.map(one => one.name.toLowerCase())
  return new Set(names).size === names.length ? found : `two arguments declare the same ${KEY}`
}

function visit(node: unknown, path: readonly string[], reachable: boolean, found: ParamHeader[]): string | undefined {
  if (typeof node !== 'object' || node === null) return undefined
  if (Array.isArray(node)) return firstFault(node, one => visit(one, path, false, found))
  const schema = node as Schema
  if (Object.hasOwn(schema, KEY)) {
    const fault = faultAt(schema, path, reachable)
    if (fault !== undefined) return fault
    found.push({ path, name: schema[KEY] as string })
  }
  return firstFault(Object.entries(schema), ([key, below]) => visitBelow(key, below, path, reachable, found))
}

/** Values that are data, not schemas: an `x-mcp-header` in them means nothing. */
const DATA = new Set(['default', 'const', 'enum', 'examples', 'required', KEY])

function visitBelow(key: string, below: unknown, path: readonly string[], reachable: boolean, found: ParamHeader[]) {
  if (DATA.has(key) || typeof below !== 'object' || below === null) return undefined
  if (key === 'properties' && !Array.isArray(below))
    return firstFault(Object.entries(below), ([name, one]) => visit(one, [...path, name], reachable, found))
  if (NAMED.has(key)) return firstFault(Object.values(below), one => visit(one, path, false, found))
  return visit(below, path, false, found)
}

/** Keywords that hold schemas by name. */
const NAMED = new Set(['patternProperties', 'dependentSchemas', '$defs', 'definitions'])

function faultAt(schema: Schema, path: readonly string[], reachable: boolean): string | undefined {
  const place = path.join('.') || 'the root'
  const name = schema[KEY]
  if (!reachable || path.length === 0) return `${place} declares ${KEY} where an argument cannot be reached by properties alone`
  if (typeof name !== 'string' || !TOKEN.test(name)) return `${place} declares an ${KEY} that is no name of a header`
  return TYPES.has(schema['type']) ? undefined : `${place} declares ${KEY} and is neither string, integer nor boolean`
}

function firstFault<T>(items: Iterable<T>, check: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const fault = check(item)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** The headers of one call. What is absent, null or no plain value has none. */
export function paramHeaders(declared: readonly ParamHeader[], args: Schema): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { path, name } of declared) {
    const text = textOf(at(args, path))
    if (text !== undefined) headers[`Mcp-Param-${name}`] = encodeHeader(text)
  }
  return headers
}

const at = (args: Schema, path: readonly string[]) =>
  path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value as Schema)[key] : undefined,
    args
  )

function textOf(value: unknown): string | undefined {
  if (typeof value === 'number')
    return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value)) ? String(value) : undefined
  return typeof value === 'string' || typeof value === 'boolean' ? String(value) : undefined
}

const PLAIN = /^[\t\x20-\x7e]+$/

/** A value as a header can carry it: plain where that is the same, else `=?base64?…?=`. */
export const encodeHeader = (text: string): string =>
  PLAIN.test(text) && text === text.trim() && !(text.startsWith('=?base64?') && text.endsWith('?='))
    ? text
    : `=?base64?${Buffer.from(text).toString('base64')}?=`
