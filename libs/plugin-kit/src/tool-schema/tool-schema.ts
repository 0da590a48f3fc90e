import { type SchemaProblem, isTree, type JsonSchema, type Schema, schema } from '@svc/core'

/** Validates the arguments of a tool. Tools and their schemas are untrusted. */
export interface ParametersCheck {
  /**
   * Returns all problems of `value`, or only the first, because a list can have a million. Fills in defaults in place. Throws ARGUMENTS_TOO_LONG if its patterns
   * would take too long, and errors of ajv for an invalid JSON Schema.
   */
  readonly check: (value: unknown, extent?: 'all' | 'first') => SchemaProblem[]
  /** Patterns that are not checked: too large, invalid, or not checkable in linear time (look-around, back-references). */
  readonly unchecked: readonly string[]
}

/** Maximum number of checked patterns. */
const PATTERNS = 200

/**
 * Creates the check for the `parameters` of a tool. RE2 checks patterns in linear time; it is loaded only for schemas with patterns.
 * `once`: the schema belongs to one request, so the check can be collected as garbage. Other checks stay in memory.
 */
export async function toolSchema(parameters: JsonSchema, { once = false } = {}): Promise<ParametersCheck> {
  const patterns = [...patternsOf(parameters)]
  if (patterns.length === 0 && !once) return { ...checking(extent => schema(parameters, { problems: extent })), unchecked: [] }
  const { bounded, isReadable, regExp } = await import('./linear.ts')
  const unchecked = patterns.filter((pattern, at) => at >= PATTERNS || !isReadable(pattern))
  const json = unchecked.length === 0 ? parameters : withoutPatterns(parameters, new Set(unchecked))
  const { check } = checking(extent => schema(json, { problems: extent, regExp }))
  return { check: (value, extent) => bounded(() => check(value, extent)), unchecked }
}

function checking(make: (extent: 'all' | 'first') => Schema): Pick<ParametersCheck, 'check'> {
  const made = { all: make('all'), first: make('first') }
  return { check: (value, extent = 'all') => made[extent].check(value) }
}

/** Keywords whose values are data, not schemas. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'required'])
/** Keywords that contain schemas by free names. */
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'])
/** Keywords that reject properties that match no pattern. */
const CLOSING = new Set(['additionalProperties', 'unevaluatedProperties'])
/** Keywords that invert the meaning of a missing pattern. */
const TURNING = new Set(['not', 'if', 'oneOf'])

/** All regular expressions in a schema. Throws RangeError for endless nesting. */
function patternsOf(json: unknown, found: Set<string> = new Set()): Set<string> {
  if (Array.isArray(json)) for (const item of json) patternsOf(item, found)
  if (!isTree(json)) return found
  if (typeof json.pattern === 'string') found.add(json.pattern)
  for (const name of namesOf(json.patternProperties)) found.add(name)
  for (const [word, value] of Object.entries(json))
    if (!DATA.has(word)) for (const item of schemasIn(word, value)) patternsOf(item, found)
  return found
}

const namesOf = (value: unknown) => (isTree(value) ? Object.keys(value) : [])
const schemasIn = (word: string, value: unknown) => (NAMED.has(word) && isTree(value) ? Object.values(value) : [value])

/** Returns the schema without these patterns. It accepts at least what it accepted with them. */
function withoutPatterns(json: JsonSchema, gone: ReadonlySet<string>): JsonSchema {
  // the result stays a valid schema
  return without(json, gone) as JsonSchema
}

function without(json: unknown, gone: ReadonlySet<string>): unknown {
  if (Array.isArray(json)) return json.map(item => without(item, gone))
  if (!isTree(json)) return json
  const isOpen = namesOf(json.patternProperties).some(name => gone.has(name))
  const kept = Object.entries(json).filter(([word, value]) => {
    if (word === 'pattern') return typeof value !== 'string' || !gone.has(value)
    return !(isOpen && CLOSING.has(word)) && !(TURNING.has(word) && !patternsOf(value).isDisjointFrom(gone))
  })
  return Object.fromEntries(kept.map(([word, value]) => [word, inner(word, value, gone)]))
}

function inner(word: string, value: unknown, gone: ReadonlySet<string>): unknown {
  if (DATA.has(word)) return value
  if (!NAMED.has(word) || !isTree(value)) return without(value, gone)
  const named = Object.entries(value).filter(([name]) => word !== 'patternProperties' || !gone.has(name))
  return Object.fromEntries(named.map(([name, entry]) => [name, without(entry, gone)]))
}
