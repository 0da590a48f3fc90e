import { type SchemaProblem, isTree, type JsonSchema, nearest, schema, schemaErrorText } from '@svc/core'
import { LRUCache } from 'lru-cache'
import { regExp } from './patterns.ts'

/** The JSON Schema of a value; undefined if it is unknown. */
export type ValueSchema = JsonSchema | undefined

/** Schemas with these keywords are not analysed. Only certain violations are reported. */
const VAGUE = ['$ref', '$dynamicRef', 'anyOf', 'oneOf', 'allOf', 'not', 'if'] as const

/** The type of a value by its schema; undefined if it is unknown or not unique. */
export function typeOf(known: ValueSchema): string | undefined {
  if (typeof known !== 'object' || VAGUE.some(word => word in known)) return undefined
  if (typeof known.type === 'string') return known.type
  return known.type === undefined && isTree(known.properties) ? 'object' : undefined
}

/** The schema of a key, or why the key does not exist. */
export type Field = { readonly known: ValueSchema } | { readonly message: string; readonly hint?: string }

/** `place` is the name of the value in messages: `input`. */
export function fieldOf(known: ValueSchema, key: string, place: string): Field {
  const type = typeOf(known)
  if (type === undefined || typeof known !== 'object') return { known: undefined }
  if (type !== 'object') return { message: `"${place}" has no keys: its type is ${type}` }
  const properties = isTree(known.properties) ? known.properties : {}
  if (Object.hasOwn(properties, key)) return { known: properties[key] as ValueSchema }
  if (known.additionalProperties !== false || known.patternProperties !== undefined) return { known: undefined }
  const near = nearest(key, Object.keys(properties))
  const names = Object.keys(properties).slice(0, 20).join(', ')
  const hint = near ? { hint: `did you mean "${near}"?` } : names ? { hint: `Use one of: ${names}` } : {}
  return { message: `"${place}" has no "${key}"`, ...hint }
}

/** The schema of list items, or of object keys, which loops iterate over. */
export function itemOf(known: ValueSchema): ValueSchema {
  const type = typeOf(known)
  if (type === 'object') return { type: 'string' }
  return type === 'array' && typeof known === 'object' ? (known.items as ValueSchema) : undefined
}

const WORDS = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']
const ONE = { $ref: '#/$defs/schema' }
const NAMED = { type: 'object', additionalProperties: ONE }
const COUNT = { type: 'integer', minimum: 0 }
const NUMBER = { type: 'number' }
const TEXTS = { type: 'array', items: { type: 'string' } }
const LIST = { type: 'array', items: ONE, minItems: 1 }

/** A meta-schema for common keywords of JSON Schema. */
const META = schema({
  ...ONE,
  $defs: {
    schema: {
      type: ['object', 'boolean'],
      properties: {
        type: { anyOf: [{ enum: WORDS }, { type: 'array', items: { enum: WORDS }, minItems: 1 }] },
        ...Object.fromEntries(
          ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'].map(key => [key, NAMED])
        ),
        ...Object.fromEntries(
          ['additionalProperties', 'propertyNames', 'contains', 'not', 'if', 'then', 'else'].map(key => [key, ONE])
        ),
        ...Object.fromEntries(
          ['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'].map(key => [key, COUNT])
        ),
        ...Object.fromEntries(
          ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'].map(key => [key, NUMBER])
        ),
        ...Object.fromEntries(['anyOf', 'oneOf', 'allOf', 'prefixItems'].map(key => [key, LIST])),
        required: TEXTS,
        enum: { type: 'array' },
        pattern: { type: 'string' },
        description: { type: 'string' },
        items: { anyOf: [ONE, { type: 'array', items: ONE }] },
      },
    },
  },
})

/** A problem with the keys that lead to it. */
export interface ValueProblem {
  readonly keys: readonly string[]
  readonly message: string
  readonly hint?: string
}

/** Keeps the first problem of each path, because every alternative of an `anyOf` reports its own. */
const firstOfEach = (problems: readonly SchemaProblem[]) =>
  [...new Map(problems.toReversed().map(problem => [problem.path, problem])).values()].toReversed()

/** Maximum number of cached results. A check takes milliseconds, and files are read often. */
const KEPT = 500
const known = new LRUCache<string, ValueProblem[]>({ max: KEPT })

/** Problems of a JSON Schema. */
export function schemaProblems(json: unknown): ValueProblem[] {
  const text = JSON.stringify(json)
  const problems = known.get(text) ?? problemsIn(json)
  known.set(text, problems)
  return problems
}

function problemsIn(json: unknown): ValueProblem[] {
  const problems = META.check(json)
  if (problems.length > 0)
    return firstOfEach(problems).map(({ keys, message }) => ({ keys, message, hint: 'Write a valid JSON Schema' }))
  try {
    // the check compiles the schema, which finds dangling references
    schema(json as JsonSchema, { regExp }).check(Symbol.for('nothing'))
    return []
  } catch (error) {
    return [{ keys: [], message: `is not a valid JSON Schema: ${schemaErrorText(error)}` }]
  }
}

/** Problems of a value by a schema of the definition. */
export const valueProblems = (json: JsonSchema, value: unknown): ValueProblem[] =>
  schema(json, { regExp, problems: 'first' })
    .check(structuredClone(value))
    .map(({ keys, message }) => ({ keys, message }))
