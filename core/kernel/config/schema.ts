import type { ErrorObject, ValidateFunction } from 'ajv'
import { nearest } from './nearest.ts'
import { compileSchema, type SchemaOptions, type JsonSchema, precompiledOf, publishSchema } from './validator.ts'

/** One problem of a value, described for the author of the value. */
export interface SchemaProblem {
  /** The place, with dots and indexes: `tools[2].name`. Empty for the value itself. */
  path: string
  /** The place as a list of keys. */
  keys: string[]
  keyword: string
  /** Expected and actual value: "must be integer, was text". */
  message: string
  /** The allowed values of an enumeration. */
  allowed?: unknown[]
  /** For an unknown key: the nearest known one. */
  nearest?: string
  value?: unknown
}

/** A schema with its TypeScript type. It is compiled at its first check, so an unused schema costs nothing. */
export interface Schema<T = unknown> {
  readonly json: JsonSchema
  /** Returns all problems of `value`, or an empty list. Fills in defaults in place. */
  check(value: unknown): SchemaProblem[]
  readonly '~type'?: T
}

/**
 * Creates a schema of the type `T` from a hand-written JSON Schema. `problems: 'first'` stops at the first problem: use it for
 * untrusted input, where a list can have a million items. `regExp` compiles the patterns of an untrusted schema, because
 * JavaScript's own engine can take for ever.
 */
export function schema<T>(json: JsonSchema, how: SchemaOptions = {}): Schema<T> {
  let fits: ReturnType<typeof precompiledOf>
  let validate: ValidateFunction | undefined
  publishSchema(json, how)
  return {
    json,
    check(value) {
      if (fits === undefined && validate === undefined) fits = precompiledOf(json, how)
      if (fits?.(value)) return []
      validate ??= compileSchema(json, how)
      return validate(value) ? [] : problemsOf(validate.errors ?? [])
    },
  }
}

// if/oneOf/anyOf report their branches as well as themselves. The branches are more precise.
const WRAPPERS = new Set(['if', 'not'])

function problemsOf(errors: ErrorObject[]): SchemaProblem[] {
  const problems = errors.filter(e => !WRAPPERS.has(e.keyword)).map(problemOf)
  const seen = new Set<string>()
  return problems.filter(f => !seen.has(f.path + f.message) && seen.add(f.path + f.message))
}

/** Names whose values are never shown. */
export const SECRET = /(^|[_-])(keys?|token|secrets?|passwords?|authorization|cookies?)$/i

/** Keys that hold secrets under arbitrary names. */
const HOLDERS = new Set(['args', 'env', 'headers'])

const EXTRA_KEYWORDS = new Set(['additionalProperties', 'unevaluatedProperties'])

function problemOf(error: ErrorObject): SchemaProblem {
  const params = error.params as Record<string, unknown>
  const keys = keysOf(error.instancePath)
  if (error.keyword === 'required')
    return { ...placed([...keys, String(params.missingProperty)]), keyword: 'required', message: 'is required' }
  if (EXTRA_KEYWORDS.has(error.keyword)) return unknownKey(keys, error, params)
  const allowed = error.keyword === 'enum' ? { allowed: params.allowedValues as unknown[] } : {}
  const secret = keys.some(key => SECRET.test(key) || HOLDERS.has(key))
  const message = `${expectation(error, params)}, was ${secret ? 'another value' : show(error.data)}`
  return { ...placed(keys), keyword: error.keyword, message, ...(secret ? {} : { value: error.data }), ...allowed }
}

function unknownKey(keys: string[], error: ErrorObject, params: Record<string, unknown>): SchemaProblem {
  const key = String(params.additionalProperty ?? params.unevaluatedProperty)
  const known = Object.keys((error.parentSchema?.properties as object | undefined) ?? {})
  const near = nearest(key, known)
  return {
    ...placed([...keys, key]),
    keyword: 'unknown',
    message: 'is not a known key',
    allowed: known,
    ...(near ? { nearest: near } : {}),
  }
}

const counted = (count: unknown, one: string, many: string) => `${String(count)} ${count === 1 ? one : many}`
const ITEMS = ['item', 'items'] as const
const CHARACTERS = ['character', 'characters'] as const
const KEYS = ['key', 'keys'] as const

/** Plain words for keywords whose texts of ajv are not. */
const PLAIN: Readonly<Record<string, (params: Record<string, unknown>) => string>> = {
  minItems: ({ limit }) => `must have at least ${counted(limit, ...ITEMS)}`,
  maxItems: ({ limit }) => `must have at most ${counted(limit, ...ITEMS)}`,
  minLength: ({ limit }) => (limit === 1 ? 'must not be empty' : `must have at least ${counted(limit, ...CHARACTERS)}`),
  maxLength: ({ limit }) => `must have at most ${counted(limit, ...CHARACTERS)}`,
  minProperties: ({ limit }) => `must have at least ${counted(limit, ...KEYS)}`,
  maxProperties: ({ limit }) => `must have at most ${counted(limit, ...KEYS)}`,
  multipleOf: ({ multipleOf }) => `must be a multiple of ${String(multipleOf)}`,
  anyOf: () => 'must have one of the allowed forms',
  oneOf: () => 'must have exactly one of the allowed forms',
  propertyNames: ({ propertyName }) => `must not have the key ${JSON.stringify(propertyName)}`,
  contains: ({ minContains }) => `must have at least ${counted(minContains, ...ITEMS)} of the required form`,
  'false schema': () => 'must not be set',
}

/** The texts of ajv for schemas that are no JSON Schema, and plain ones. */
const SCHEMA_TEXTS: readonly (readonly [pattern: RegExp, text: (part: string) => string])[] = [
  [
    /^type must be JSONType or JSONType\[\]: (.*)$/,
    type => `${JSON.stringify(type)} is not a type; use string, number, integer, boolean, object, array or null`,
  ],
  [
    /^(\S+ value must be \[.*\])$/,
    text =>
      text
        .replace(' value', '')
        .replaceAll(/[[\]"]/g, '')
        .replaceAll(',', ' or '),
  ],
  [/^can't resolve reference (\S+) from id/, ref => `the $ref ${JSON.stringify(ref)} names no schema`],
  [/^(enum) must have non-empty array$/, () => 'enum must have at least one value'],
]

/** Why a JSON Schema is not valid, from the error that its first check throws. */
export function schemaErrorText(error: unknown): string {
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  for (const [pattern, text] of SCHEMA_TEXTS) {
    const found = pattern.exec(line)
    if (found) return text(found[1]!.slice(0, 100))
  }
  return line.slice(0, 200)
}

function expectation(error: ErrorObject, params: Record<string, unknown>): string {
  if (error.keyword === 'enum')
    return `must be one of ${(params.allowedValues as unknown[]).map(v => JSON.stringify(v)).join(', ')}`
  if (error.keyword === 'const') return `must be ${JSON.stringify(params.allowedValue)}`
  if (error.keyword === 'pattern') return String(error.parentSchema?.patternHint ?? `must match ${String(params.pattern)}`)
  if (error.keyword === 'type') return `must be ${[params.type].flat().join(' or ')}`
  return PLAIN[error.keyword]?.(params) ?? error.message ?? 'is invalid'
}

/** Describes the kind of a value, and a short value itself: `text "abc"`, `list`, `null`. */
export function show(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return value.length > 60 ? `text of ${value.length} characters` : `text ${JSON.stringify(value)}`
  return typeof value === 'object' ? 'an object' : String(value as number | boolean | bigint | symbol | undefined)
}

const placed = (keys: string[]) => ({ keys, path: pathOf(keys) })

/** Formats keys for people: `tools[2].name`. */
export function pathOf(keys: readonly string[]): string {
  return keys.reduce((path, key) => (/^\d+$/.test(key) && path ? `${path}[${key}]` : path ? `${path}.${key}` : key), '')
}

const keysOf = (pointer: string) =>
  pointer
    .split('/')
    .slice(1)
    .map(key => key.replaceAll('~1', '/').replaceAll('~0', '~'))
