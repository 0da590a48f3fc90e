import type { JsonSchema } from './schema.ts'

type Words = Readonly<Record<string, unknown>>
type Tree = Record<string, unknown>

/**
 * Whether `value` surely fits, its defaults filled in as ajv does. False means "perhaps not", also for every keyword that is not known here: then ajv
 * decides, and says what is wrong. A start whose configuration is good so does without loading and compiling, which is a fifth of its time.
 */
export function surelyFits(json: JsonSchema, value: unknown): boolean {
  if (typeof json === 'boolean') return json
  return Object.entries(json).every(([word, given]) => CHECKS[word]?.(given, value, json) ?? false)
}

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  object: isTree,
  array: Array.isArray,
  string: value => typeof value === 'string',
  boolean: value => typeof value === 'boolean',
  number: isNumber,
  integer: value => Number.isInteger(value),
  null: value => value === null,
}

type Check = (given: unknown, value: unknown, json: Words) => boolean

const ignored: Check = () => true
const bound =
  (holds: (value: number, limit: number) => boolean): Check =>
  (limit, value) =>
    !isNumber(value) || holds(value, Number(limit))
const size =
  (holds: (length: number, limit: number) => boolean, counts: (value: unknown) => number | undefined): Check =>
  (limit, value) => {
    const length = counts(value)
    return length === undefined || holds(length, Number(limit))
  }
const atLeast = (a: number, b: number) => a >= b
const atMost = (a: number, b: number) => a <= b
const lengthOf = (value: unknown) => (typeof value === 'string' ? Array.from(value).length : undefined)
const countOf = (value: unknown) => (Array.isArray(value) ? value.length : undefined)

const CHECKS: Readonly<Record<string, Check>> = {
  title: ignored,
  description: ignored,
  default: ignored,
  patternHint: ignored,
  type: (types, value) => [types].flat().some(type => TYPES[String(type)]?.(value) ?? false),
  enum: (allowed, value) => (allowed as unknown[]).includes(value),
  minimum: bound(atLeast),
  maximum: bound(atMost),
  exclusiveMinimum: bound((a, b) => a > b),
  exclusiveMaximum: bound((a, b) => a < b),
  minLength: size(atLeast, lengthOf),
  maxLength: size(atMost, lengthOf),
  minItems: size(atLeast, countOf),
  maxItems: size(atMost, countOf),
  pattern: (pattern, value) => typeof value !== 'string' || new RegExp(String(pattern), 'u').test(value),
  items: (items, value) =>
    !Array.isArray(items) && (!Array.isArray(value) || value.every(item => surelyFits(items as JsonSchema, item))),
  required: (names, value) => !isTree(value) || (names as string[]).every(name => has(value, name)),
  dependencies: (needs, value) =>
    !isTree(value) ||
    Object.entries(needs as Words).every(
      ([name, others]) => !has(value, name) || (Array.isArray(others) && others.every(other => has(value, String(other))))
    ),
  properties: (properties, value) =>
    !isTree(value) || Object.entries(properties as Words).every(([name, json]) => propertyFits(value, name, json as JsonSchema)),
  propertyNames: (json, value) => !isTree(value) || Object.keys(value).every(name => surelyFits(json as JsonSchema, name)),
  additionalProperties: (json, value, { properties = {} }) =>
    !isTree(value) ||
    Object.keys(value).every(name => Object.hasOwn(properties as object, name) || surelyFits(json as JsonSchema, value[name])),
}

// ajv asks the same way: a key whose value is undefined is absent
const has = (value: Tree, name: string) => Object.hasOwn(value, name) && value[name] !== undefined

function propertyFits(value: Tree, name: string, json: JsonSchema): boolean {
  const preset = typeof json === 'object' ? json.default : undefined
  if (!has(value, name) && preset !== undefined)
    Object.defineProperty(value, name, { value: structuredClone(preset), enumerable: true, writable: true, configurable: true })
  return !has(value, name) || surelyFits(json, value[name])
}
