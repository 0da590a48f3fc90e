import type { JsonSchema } from '@svc/core'
import type { Json } from '@svc/core/contracts'

type Keywords = { readonly [keyword: string]: unknown }
const isObject = (value: unknown): value is Keywords => typeof value === 'object' && value !== null && !Array.isArray(value)
const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

/** Schemas nested deeper give `null`, because a schema can refer to itself. */
const DEEPEST = 16

/** Variants of a value: another branch of each union, and another text for patterns. */
const VARIANTS = 4
/** Optional properties are left out so long before a limit. */
const MARGIN = 8
/** Maximum number of values in a sample. */
const VALUES = 2_000
/** Longer schemas are not checked. */
const LONGEST_SCHEMA = 200_000

/**
 * A value that fits a schema. Strings contain `text` where they can. Undefined if it finds none: common keywords are supported, and the
 * value is checked.
 */
export async function sampleOf(root: JsonSchema, text: string): Promise<Json | undefined> {
  if (root === false) return undefined
  const check = await checkOf(root)
  for (let variant = 0; variant < VARIANTS; variant++) {
    // The check fills in defaults, and the value can contain parts of the schema.
    const value = JSON.parse(JSON.stringify(sample(root, { root, text, variant, depth: 0, budget: { left: VALUES } }))) as Json
    if (check === undefined || check(value)) return value
  }
  return undefined
}

/** Whether a value fits a schema. */
export async function fits(schema: JsonSchema, value: unknown): Promise<boolean> {
  const check = await checkOf(schema)
  return check === undefined || check(structuredClone(value))
}

type Check = (value: unknown) => boolean

const checks = new WeakMap<object, Promise<Check | undefined>>()

/** The check of a schema; undefined if it is too long. A schema that is not valid accepts nothing. */
function checkOf(schema: JsonSchema): Promise<Check | undefined> {
  if (typeof schema !== 'object') return Promise.resolve(undefined)
  const check = checks.get(schema) ?? compile(schema)
  checks.set(schema, check)
  return check
}

async function compile(schema: JsonSchema): Promise<Check | undefined> {
  try {
    if (JSON.stringify(schema).length > LONGEST_SCHEMA) return undefined
    const { toolSchema } = await import('@svc/plugin-kit/tool-schema')
    const { check } = await toolSchema(schema, { once: true })
    // The first check compiles the schema, which fails for one that is not valid.
    check(null, 'first')
    return value => check(value, 'first').length === 0
  } catch {
    return () => false
  }
}

interface Where {
  readonly root: JsonSchema
  readonly text: string
  readonly variant: number
  readonly depth: number
  /** Values that can still be made. A schema that refers to itself often would have more than memory holds. */
  readonly budget: { left: number }
}

function sample(schema: unknown, where: Where): Json {
  if (!isObject(schema) || where.depth > DEEPEST || where.budget.left-- <= 0) return null
  const inner = { ...where, depth: where.depth + 1 }
  if ('const' in schema) return schema.const as Json
  if (Array.isArray(schema.enum)) return (schema.enum[0] ?? null) as Json
  if ('default' in schema) return schema.default as Json
  if (typeof schema.$ref === 'string') return sample(lookUp(where.root, schema.$ref), inner)
  const branches = [schema.anyOf, schema.oneOf].find(Array.isArray)
  if (branches) {
    const { anyOf: _any, oneOf: _one, ...own } = schema
    const branch: unknown = branches[Math.min(where.variant, branches.length - 1)]
    return sample(Object.keys(own).length === 0 ? branch : merged(own, [branch], where.root), inner)
  }
  if (Array.isArray(schema.allOf)) return sample(merged(schema, schema.allOf, where.root), inner)
  return SAMPLES[typeOf(schema)]?.(schema, inner) ?? null
}

/** The keyword that shows the type of a schema that names none. */
const SHOWS = {
  properties: 'object',
  required: 'object',
  items: 'array',
  pattern: 'string',
  minLength: 'string',
  minimum: 'number',
}

function typeOf(schema: Keywords): string {
  const type: unknown = Array.isArray(schema.type) ? schema.type[0] : schema.type
  if (typeof type === 'string') return type
  return Object.entries(SHOWS).find(([keyword]) => keyword in schema)?.[1] ?? ''
}

const SAMPLES: Readonly<Record<string, (schema: Keywords, where: Where) => Json>> = {
  object(schema, where) {
    const properties = isObject(schema.properties) ? schema.properties : {}
    const required = new Set(Array.isArray(schema.required) ? schema.required.filter(name => typeof name === 'string') : [])
    const made: Record<string, Json> = {}
    let count = 0
    for (const name of [...Object.keys(properties), ...required]) {
      // A schema that refers to itself ends where it can.
      const isLate = where.depth > DEEPEST - MARGIN || where.budget.left < MARGIN || count >= MOST
      if (Object.hasOwn(made, name) || (isLate && !required.has(name))) continue
      const value = sample(Object.hasOwn(properties, name) ? properties[name] : schema.additionalProperties, where)
      // A property can have any name, `__proto__` too.
      Object.defineProperty(made, name, { value, enumerable: true, configurable: true, writable: true })
      count++
    }
    return made
  },
  array(schema, where) {
    const first = Array.isArray(schema.prefixItems) ? schema.prefixItems.slice(0, MOST) : []
    const least = numberOf(schema.minItems) ?? 1
    const count = Math.min(Math.max(least, first.length), numberOf(schema.maxItems) ?? MOST, MOST)
    return Array.from({ length: count }, (_, at) => itemAt(at, schema, first, where))
  },
  string(schema, { text, variant }) {
    if (typeof schema.format === 'string' && Object.hasOwn(FORMATS, schema.format)) return FORMATS[schema.format]!
    const source = typeof schema.pattern === 'string' ? (PATTERNED[variant] ?? text) : text
    return source
      .slice(0, numberOf(schema.maxLength) ?? 200)
      .toWellFormed()
      .padEnd(Math.min(numberOf(schema.minLength) ?? 0, 1000), '.')
  },
  integer: schema => stepped(schema, Math.ceil(leastOf(schema))),
  number: schema => stepped(schema, leastOf(schema)),
  boolean: () => true,
  null: () => null,
}

/** Limit for lists and objects. */
const MOST = 100

/** Texts for strings with a pattern, by variant. */
const PATTERNED = [undefined, 'abc', '123', 'ABC']
const FORMATS: Readonly<Record<string, string>> = {
  'date-time': '2026-01-01T00:00:00Z',
  date: '2026-01-01',
  time: '00:00:00Z',
  duration: 'P1D',
  email: 'user@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
}

function itemAt(at: number, schema: Keywords, first: readonly unknown[], where: Where): Json {
  const isUnique = schema.uniqueItems === true && at > 0
  const item = sample(first[at] ?? schema.items ?? {}, isUnique ? { ...where, text: `${at + 1} ${where.text}` } : where)
  return isUnique && typeof item === 'number' ? item + at : item
}

/** The first multiple that is not lower. */
function stepped({ multipleOf }: Keywords, least: number): number {
  const step = numberOf(multipleOf)
  return step === undefined || step <= 0 ? least : Math.ceil(least / step) * step
}

/** The lower bound of a number; without one, the largest value up to 0 within the upper bound. */
function leastOf({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Keywords): number {
  const above = numberOf(exclusiveMinimum)
  const below = numberOf(exclusiveMaximum)
  const least = above === undefined ? numberOf(minimum) : Math.max(above + 1, numberOf(minimum) ?? above + 1)
  return least ?? Math.min(0, numberOf(maximum) ?? 0, below === undefined ? 0 : below - 1)
}

/** Merges the `allOf` parts of a schema: their properties and plain keywords. */
function merged({ allOf: _allOf, ...own }: Keywords, parts: readonly unknown[], root: JsonSchema): Keywords {
  const all = [
    own,
    ...parts.map(part => (isObject(part) && typeof part.$ref === 'string' ? lookUp(root, part.$ref) : part)),
  ].filter(isObject)
  const properties = Object.assign({}, ...all.map(part => part.properties)) as object
  const required = all.flatMap(part => (Array.isArray(part.required) ? (part.required as unknown[]) : []))
  return {
    ...(Object.assign({}, ...all) as Keywords),
    ...(required.length > 0 ? { required } : {}),
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
  }
}

/** Resolves a `$ref` within the schema, such as `#/$defs/step`. */
function lookUp(root: JsonSchema, reference: string): unknown {
  const keys = reference.replace(/^#\/?/, '').split('/').filter(Boolean)
  return keys.reduce<unknown>((at, key) => (isObject(at) ? at[key.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined), root)
}
