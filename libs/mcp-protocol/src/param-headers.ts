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

/**
 * Returns the headers that an input schema declares with `"x-mcp-header": "Region"` at a property. Returns a message if a declaration is invalid; callers must
 * reject such a tool.
 */
export function headersOf(schema: Schema): readonly ParamHeader[] | string {
  const found: ParamHeader[] = []
  const problem = visit(schema, [], true, found)
  if (problem !== undefined) return problem
  const names = found.map(paramHeader => paramHeader.name.toLowerCase())
  return new Set(names).size === names.length ? found : `two arguments declare the same ${KEY}`
}

function visit(node: unknown, path: readonly string[], reachable: boolean, found: ParamHeader[]): string | undefined {
  if (typeof node !== 'object' || node === null) return undefined
  if (Array.isArray(node)) return firstProblem(node, item => visit(item, path, false, found))
  const schema = node as Schema
  if (Object.hasOwn(schema, KEY)) {
    const problem = problemAt(schema, path, reachable)
    if (problem !== undefined) return problem
    found.push({ path, name: schema[KEY] as string })
  }
  return firstProblem(Object.entries(schema), ([key, below]) => visitBelow(key, below, path, reachable, found))
}

/** Keywords with data as their value, not schemas. An `x-mcp-header` in data has no meaning. */
const DATA = new Set(['default', 'const', 'enum', 'examples', 'required', KEY])

function visitBelow(key: string, below: unknown, path: readonly string[], reachable: boolean, found: ParamHeader[]) {
  if (DATA.has(key) || typeof below !== 'object' || below === null) return undefined
  if (key === 'properties' && !Array.isArray(below))
    return firstProblem(Object.entries(below), ([name, item]) => visit(item, [...path, name], reachable, found))
  if (NAMED.has(key)) return firstProblem(Object.values(below), item => visit(item, path, false, found))
  return visit(below, path, false, found)
}

/** Keywords that hold schemas by name. */
const NAMED = new Set(['patternProperties', 'dependentSchemas', '$defs', 'definitions'])

function problemAt(schema: Schema, path: readonly string[], reachable: boolean): string | undefined {
  const place = path.join('.') || 'the root'
  const name = schema[KEY]
  if (!reachable || path.length === 0) return `${place} declares ${KEY}, but "properties" alone do not lead to this argument`
  if (typeof name !== 'string' || !TOKEN.test(name)) return `${place} declares an ${KEY} that is not a valid header name`
  return TYPES.has(schema['type']) ? undefined : `${place} declares ${KEY}, but its type is not string, integer or boolean`
}

function firstProblem<T>(items: Iterable<T>, check: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const problem = check(item)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Returns the headers of one call. An argument that is absent, null, an object or an array has no header. */
export function paramHeaders(declared: readonly ParamHeader[], args: Schema): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { path, name } of declared) {
    const text = headerText(args, path)
    if (text !== undefined) headers[`Mcp-Param-${name}`] = encodeHeader(text)
  }
  return headers
}

/** Returns the text of an argument for its header, before it is encoded. */
export function headerText(args: unknown, path: readonly string[]): string | undefined {
  const own = (value: unknown, key: string) =>
    typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value as Schema)[key] : undefined
  const value = path.reduce<unknown>(own, args)
  if (typeof value === 'number')
    return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value)) ? String(value) : undefined
  return typeof value === 'string' || typeof value === 'boolean' ? String(value) : undefined
}

const PLAIN = /^[\t\x20-\x7e]+$/

/** Encodes a value for a header: unchanged if a header can carry it, otherwise as `=?base64?…?=`. */
export const encodeHeader = (text: string): string =>
  PLAIN.test(text) && text === text.trim() && !(text.startsWith('=?base64?') && text.endsWith('?='))
    ? text
    : `=?base64?${Buffer.from(text).toString('base64')}?=`

const ENCODED = /^=\?base64\?((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)\?=$/

/** Decodes a header that can be encoded as `=?base64?…?=`. Returns `undefined` if the encoding is invalid. */
export function decodeHeader(value: string): string | undefined {
  if (!value.startsWith('=?base64?') || !value.endsWith('?=')) return value
  const match = ENCODED.exec(value)
  if (!match) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(match[1]!, 'base64'))
  } catch {
    return undefined
  }
}
