import { type SchemaProblem, isTree, type JsonSchema, type Schema, schema } from '@svc/core'

/** The check of what a tool is called with. Tools come from strangers, and so do their schemas. */
export interface ToolSchema {
  /**
   * All faults of `value`, or the first: where a list may hold a million. Fills in defaults in place. Throws ARGUMENTS_TOO_LONG where its patterns would take too
   * long, and whatever ajv throws for what is no JSON Schema.
   */
  readonly check: (value: unknown, faults?: 'all' | 'first') => SchemaProblem[]
  /** Patterns that are not checked: they cannot be in linear time (look-around, back-references), or are no regular expressions, or too large. */
  readonly unchecked: readonly string[]
}

/** More than this are not checked. */
const PATTERNS = 200

/** Makes the check of a tool's `parameters`. Patterns take time in proportion to the text (RE2), whatever they say; the engine is loaded for those who have some. */
export async function toolSchema(parameters: JsonSchema): Promise<ToolSchema> {
  const patterns = [...patternsOf(parameters)]
  if (patterns.length === 0) return { ...checking(problems => schema(parameters, { faults: problems })), unchecked: [] }
  const { bounded, isReadable, regExp } = await import('./linear.ts')
  const unchecked = patterns.filter((pattern, at) => at >= PATTERNS || !isReadable(pattern))
  const json = unchecked.length === 0 ? parameters : withoutPatterns(parameters, new Set(unchecked))
  const { check } = checking(problems => schema(json, { faults: problems, regExp }))
  return { check: (value, problems) => bounded(() => check(value, problems)), unchecked }
}

function checking(make: (faults: 'all' | 'first') => Schema): Pick<ToolSchema, 'check'> {
  const made = { all: make('all'), first: make('first') }
  return { check: (value, problems = 'all') => made[problems].check(value) }
}

/** Keywords whose values are data, not schemas. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'required'])
/** Keywords that hold schemas by names of the author's choice. */
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'])
/** Keywords that refuse what no pattern has named. */
const CLOSING = new Set(['additionalProperties', 'unevaluatedProperties'])
/** Keywords that turn round what a missing pattern means. */
const TURNING = new Set(['not', 'if', 'oneOf'])

/** All regular expressions in a schema. Throws RangeError for one that is nested without end. */
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

/** The schema as if these patterns were not there: it takes at least what it took with them. */
function withoutPatterns(json: JsonSchema, gone: ReadonlySet<string>): JsonSchema {
  // a schema stays one
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
