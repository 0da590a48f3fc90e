import { type SchemaProblem, isTree, type JsonSchema, messageOf, nearest, schema } from '@svc/core'
import { regExp } from './patterns.ts'

/** What is known of a value: its schema; undefined: nothing. */
export type Known = JsonSchema | undefined

/** Schemas that say what a value is in other words than these are not looked into: what is not surely wrong is right. */
const VAGUE = ['$ref', '$dynamicRef', 'anyOf', 'oneOf', 'allOf', 'not', 'if'] as const

/** The one type that a value has by its schema; undefined: several, or not known. */
export function typeOf(known: Known): string | undefined {
  if (typeof known !== 'object' || VAGUE.some(word => word in known)) return undefined
  if (typeof known.type === 'string') return known.type
  return known.type === undefined && isTree(known.properties) ? 'object' : undefined
}

/** What is known of a key of a value, or why there is none. */
export type Field = { readonly known: Known } | { readonly message: string; readonly hint?: string }

/** `place` is how the value is called in the message: `input`. */
export function fieldOf(known: Known, key: string, place: string): Field {
  const type = typeOf(known)
  if (type === undefined || typeof known !== 'object') return { known: undefined }
  if (type !== 'object') return { message: `"${place}" has no keys: it is of type ${type}` }
  const properties = isTree(known.properties) ? known.properties : {}
  if (Object.hasOwn(properties, key)) return { known: properties[key] as Known }
  if (known.additionalProperties !== false || known.patternProperties !== undefined) return { known: undefined }
  const near = nearest(key, Object.keys(properties))
  const names = Object.keys(properties).slice(0, 20).join(', ')
  const hint = near ? { hint: `did you mean "${near}"?` } : names ? { hint: `it has ${names}` } : {}
  return { message: `"${place}" has no "${key}"`, ...hint }
}

/** What is known of the items of a list, and of the keys of an object, which loops go over. */
export function itemOf(known: Known): Known {
  const type = typeOf(known)
  if (type === 'object') return { type: 'string' }
  return type === 'array' && typeof known === 'object' ? (known.items as Known) : undefined
}

const WORDS = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']
const ONE = { $ref: '#/$defs/schema' }
const NAMED = { type: 'object', additionalProperties: ONE }
const COUNT = { type: 'integer', minimum: 0 }
const NUMBER = { type: 'number' }
const TEXTS = { type: 'array', items: { type: 'string' } }
const LIST = { type: 'array', items: ONE, minItems: 1 }

/** What a JSON Schema is, as far as it can be wrong in what it says of the commonest words. */
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

/** One thing that is wrong, with the keys that lead to it. */
export interface Wrong {
  readonly keys: readonly string[]
  readonly message: string
  readonly hint?: string
}

/** Where one of several kinds fits none, each of them says so. */
const firstOfEach = (faults: readonly SchemaProblem[]) =>
  [...new Map(faults.toReversed().map(fault => [fault.path, fault])).values()].toReversed()

/** So many are remembered: making one takes milliseconds, and files are read again and again. */
const KEPT = 500
const known = new Map<string, Wrong[]>()

/** What is wrong with somebody's idea of a JSON Schema. */
export function schemaFaults(json: unknown): Wrong[] {
  const text = JSON.stringify(json)
  const faults = known.get(text) ?? faultsIn(json)
  if (known.size >= KEPT) known.clear()
  known.set(text, faults)
  return faults
}

function faultsIn(json: unknown): Wrong[] {
  const faults = META.check(json)
  if (faults.length > 0)
    return firstOfEach(faults).map(({ keys, message }) => ({ keys, message, hint: 'it has to be a JSON Schema' }))
  try {
    // compiles it: what refers to nothing is found
    schema(json as JsonSchema, { regExp }).check(Symbol.for('nothing'))
    return []
  } catch (error) {
    return [{ keys: [], message: `is no JSON Schema: ${messageOf(error).split('\n')[0]}` }]
  }
}

/** What is wrong with a value, by a schema that somebody wrote. */
export const valueFaults = (json: JsonSchema, value: unknown): Wrong[] =>
  schema(json, { regExp, faults: 'first' })
    .check(structuredClone(value))
    .map(({ keys, message }) => ({ keys, message }))
