import { type Schema, Validator } from '@cfworker/json-schema'
import {
  type ErrorSchema,
  ErrorSchemaBuilder,
  ROOT_SCHEMA_PREFIX,
  type RJSFSchema,
  type RJSFValidationError,
  type ValidatorType,
  withIdRefPrefix,
} from '@rjsf/utils'

// The policy of the page allows no code from text, so this validator reads the schema at each check. What it says only helps the
// reader: the server validates the arguments again, and decides.

const LONGEST = 256_000
const DEEPEST = 40
/** Regular expressions of a tool server can take the browser hours. The server checks them with limits. */
const LEFT_OUT = new Set(['pattern', 'patternProperties'])

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The schema as a form can use it; undefined if it is too large or too deep for one. */
export function formSchema(schema: object): RJSFSchema | undefined {
  if (JSON.stringify(schema).length > LONGEST) return undefined
  const plain = without(schema, 0)
  return isObject(plain) ? (plain as RJSFSchema) : undefined
}

/** `isNames`: the members are names that the author chose, not keywords. */
function without(value: unknown, depth: number, isNames = false): unknown {
  if (depth > DEEPEST) return undefined
  if (Array.isArray(value)) {
    const items = value.map(item => without(item, depth + 1))
    return items.includes(undefined) ? undefined : items
  }
  if (!isObject(value)) return value
  const kept: [string, unknown][] = []
  for (const [name, member] of Object.entries(value)) {
    if (!isNames && LEFT_OUT.has(name)) continue
    const plain = without(member, depth + 1, !isNames && NAMES.has(name))
    if (plain === undefined) return undefined
    kept.push([name, plain])
  }
  return Object.fromEntries(kept)
}
const NAMES = new Set(['properties', 'definitions', '$defs', 'dependentSchemas'])

function check(schema: RJSFSchema, data: unknown, root: RJSFSchema | undefined, isShort: boolean) {
  // it writes addresses into the schemas, which hold for one of its two roles only
  const own = structuredClone(root ? withIdRefPrefix(schema) : schema) as Schema
  const validator = new Validator(own, '2020-12', isShort)
  if (root) validator.addSchema(structuredClone(root) as Schema, ROOT_SCHEMA_PREFIX)
  return validator.validate(data)
}

/** The names in a JSON pointer such as `#/a/0`. */
const stepsOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map(step => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'))

/** Keywords that only say that something inside of them is wrong. */
const OUTER = new Set(['properties', 'items', 'prefixItems', '$ref', 'allOf', 'if', 'then', 'else', 'additionalProperties'])

const TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'empty',
}

/** A message of the validator, in words for people who do not know JSON Schema. */
function wordsOf(keyword: string, error: string): string {
  if (keyword === 'anyOf' || keyword === 'oneOf') return 'The value has none of the accepted forms.'
  if (keyword !== 'type') return error
  const [, list = ''] = /Expected "(.+)"\.$/s.exec(error) ?? []
  return `The value must be ${list
    .split('", "')
    .map(type => TYPES[type] ?? type)
    .join(' or ')}.`
}

/** What is wrong with a value, for each of its members. */
export function problemsOf(data: unknown, schema: RJSFSchema): { errors: RJSFValidationError[]; errorSchema: ErrorSchema } {
  const builder = new ErrorSchemaBuilder()
  const errors: RJSFValidationError[] = []
  try {
    for (const { keyword, instanceLocation, error } of check(schema, data, undefined, false).errors) {
      if (OUTER.has(keyword)) continue
      const missing = keyword === 'required' ? /"(.+)"\.$/s.exec(error)?.[1] : undefined
      const steps = [...stepsOf(instanceLocation), ...(missing === undefined ? [] : [missing])]
      const message = missing === undefined ? wordsOf(keyword, error) : 'A value is required.'
      builder.addErrors(message, steps)
      errors.push({ name: keyword, message, property: steps.join('.'), stack: message })
    }
  } catch {
    // the schema itself is not valid, or refers to what is not there: the server says so when it is asked
  }
  return { errors, errorSchema: builder.ErrorSchema }
}

export const validator: ValidatorType = {
  validateFormData: (data, schema) => problemsOf(data, schema),
  isValid(schema, data, root) {
    try {
      return check(schema, data, root, true).valid
    } catch {
      return false
    }
  },
  rawValidation: (schema, data) => ({ errors: problemsOf(data, schema).errors as never[] }),
} as ValidatorType
