import type { JsonSchema } from '@svc/core'
import type { Json } from '@svc/core/contracts'

type Keywords = { readonly [keyword: string]: unknown }
const isObject = (value: unknown): value is Keywords => typeof value === 'object' && value !== null && !Array.isArray(value)
const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

/** Deeper schemas are taken as `null`: a schema may refer to itself. */
const DEEPEST = 16

/** A value that fits the common keywords of a schema; texts say `text`. */
export function sampleOf(root: JsonSchema, text: string): Json {
  return sample(root, { root, text, depth: 0 })
}

interface Where {
  readonly root: JsonSchema
  readonly text: string
  readonly depth: number
}

function sample(schema: unknown, where: Where): Json {
  if (!isObject(schema) || where.depth > DEEPEST) return null
  const inner = { ...where, depth: where.depth + 1 }
  if ('const' in schema) return schema.const as Json
  if (Array.isArray(schema.enum)) return (schema.enum[0] ?? null) as Json
  if ('default' in schema) return schema.default as Json
  if (typeof schema.$ref === 'string') return sample(lookUp(where.root, schema.$ref), inner)
  const [branch] = [schema.anyOf, schema.oneOf].filter(Array.isArray)
  if (branch) return sample(branch[0], inner)
  if (Array.isArray(schema.allOf)) return sample(merged(schema, schema.allOf, where.root), inner)
  const type = Array.isArray(schema.type) ? schema.type[0] : (schema.type ?? (isObject(schema.properties) ? 'object' : undefined))
  return SAMPLES[String(type)]?.(schema, inner) ?? null
}

const SAMPLES: Readonly<Record<string, (schema: Keywords, where: Where) => Json>> = {
  object(schema, where) {
    const properties = isObject(schema.properties) ? schema.properties : {}
    return Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, sample(property, where)]))
  },
  array: (schema, where) =>
    Array.from({ length: Math.min(numberOf(schema.minItems) ?? 1, numberOf(schema.maxItems) ?? 100, 100) }, () =>
      sample(schema.items, where)
    ),
  string: (schema, { text }) =>
    text.slice(0, numberOf(schema.maxLength) ?? 200).padEnd(Math.min(numberOf(schema.minLength) ?? 0, 1000), '.'),
  integer: schema => Math.ceil(leastOf(schema)),
  number: leastOf,
  boolean: () => true,
}

/** The least number above its bounds, or 0 where that is within them. */
function leastOf({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Keywords): number {
  const above = numberOf(exclusiveMinimum)
  const below = numberOf(exclusiveMaximum)
  const least = above === undefined ? numberOf(minimum) : Math.max(above + 1, numberOf(minimum) ?? above + 1)
  return least ?? Math.min(0, numberOf(maximum) ?? 0, below === undefined ? 0 : below - 1)
}

/** All of a schema's parts as one, as far as they name properties and plain keywords. */
function merged({ allOf: _allOf, ...own }: Keywords, parts: readonly unknown[], root: JsonSchema): Keywords {
  const all = [
    own,
    ...parts.map(part => (isObject(part) && typeof part.$ref === 'string' ? lookUp(root, part.$ref) : part)),
  ].filter(isObject)
  const properties = Object.assign({}, ...all.map(part => part.properties)) as object
  return { ...(Object.assign({}, ...all) as Keywords), ...(Object.keys(properties).length > 0 ? { properties } : {}) }
}

/** Follows a `$ref` within the schema: `#/$defs/step`. */
function lookUp(root: JsonSchema, reference: string): unknown {
  const keys = reference.replace(/^#\/?/, '').split('/').filter(Boolean)
  return keys.reduce<unknown>((at, key) => (isObject(at) ? at[key.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined), root)
}
