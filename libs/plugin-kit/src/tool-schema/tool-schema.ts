import { type Fault, type JsonSchema, type Schema, schema } from '@svc/core'
import { patternsOf, withoutPatterns } from './patterns.ts'

/** The check of what a tool is called with. Tools come from strangers, and so do their schemas. */
export interface ToolSchema {
  /**
   * All faults of `value`, or the first: where a list may hold a million. Fills in defaults in place. Throws ARGUMENTS_TOO_LONG where its patterns would take too
   * long, and whatever ajv throws for what is no JSON Schema.
   */
  readonly check: (value: unknown, faults?: 'all' | 'first') => Fault[]
  /** Patterns that are not checked: they cannot be in linear time (look-around, back-references), or are no regular expressions, or too large. */
  readonly unchecked: readonly string[]
}

/** More than this are not checked. */
const PATTERNS = 200

/** Makes the check of a tool's `parameters`. Patterns take time in proportion to the text (RE2), whatever they say; the engine is loaded for those who have some. */
export async function toolSchema(parameters: JsonSchema): Promise<ToolSchema> {
  const patterns = [...patternsOf(parameters)]
  if (patterns.length === 0) return { ...checking(faults => schema(parameters, { faults })), unchecked: [] }
  const { bounded, isReadable, regExp } = await import('./linear.ts')
  const unchecked = patterns.filter((one, at) => at >= PATTERNS || !isReadable(one))
  const json = unchecked.length === 0 ? parameters : withoutPatterns(parameters, new Set(unchecked))
  const { check } = checking(faults => schema(json, { faults, regExp }))
  return { check: (value, faults) => bounded(() => check(value, faults)), unchecked }
}

function checking(make: (faults: 'all' | 'first') => Schema): Pick<ToolSchema, 'check'> {
  const made = { all: make('all'), first: make('first') }
  return { check: (value, faults = 'all') => made[faults].check(value) }
}
