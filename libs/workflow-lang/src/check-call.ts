import { type SchemaProblem, isTree, type JsonSchema, type Schema, schema } from '@svc/core'
import { pattern } from './patterns.ts'
import type { ValueProblem } from './schemas.ts'
import { holdsExpression } from './template.ts'

type Tree = Readonly<Record<string, unknown>>

/** Patterns that cannot run in linear time throw, and then the schema is not checked. */
const regExp = Object.assign(linear, { code: 'linear' })

function linear(text: string) {
  const made = pattern(text)
  return { test: (value: string) => made.test(value), toString: () => text }
}

/** Values that violate a schema, whatever the expressions in them return. */
export const callProblems = (root: Tree, value: Tree): ValueProblem[] =>
  [...new Fitting(root).problems(root, value, [])].map(wrongOf)

function wrongOf({ keys, message, keyword, nearest, allowed = [] }: SchemaProblem): ValueProblem {
  if (keyword !== 'unknown') return { keys, message }
  const names = allowed.slice(0, 20).join(', ')
  const hint = nearest ? `did you mean "${nearest}"?` : names && `Use one of: ${names}`
  return { keys, message, ...(hint ? { hint } : {}) }
}

/** Checks a value against a schema. Constant parts are checked completely, others only for what no expression can change. */
class Fitting {
  readonly #root: Tree

  constructor(root: Tree) {
    this.#root = root
  }

  *problems(part: unknown, value: unknown, keys: readonly string[]): Generator<SchemaProblem> {
    if (!isTree(part)) return
    const isConstant = !holdsExpression(value)
    if (!isConstant && typeof value === 'string') return
    const check = isConstant ? wholeOf(this.#root, part) : outsideOf(part)
    for (const problem of problemsOf(check, value)) yield { ...problem, keys: [...keys, ...problem.keys] }
    if (!isConstant) yield* this.#within(part, value as object, keys)
  }

  *#within(part: Tree, value: object, keys: readonly string[]): Generator<SchemaProblem> {
    for (const [key, item] of Object.entries(value)) {
      const inner = Array.isArray(value) ? itemsOf(part) : propertyOf(part, key)
      yield* this.problems(inner, item, [...keys, key])
    }
  }
}

const itemsOf = ({ items, prefixItems }: Tree) => (prefixItems === undefined ? items : undefined)

function propertyOf({ properties, patternProperties, additionalProperties }: Tree, key: string): unknown {
  if (isTree(properties) && Object.hasOwn(properties, key)) return properties[key]
  return patternProperties === undefined ? additionalProperties : undefined
}

/** A schema that cannot be compiled is not checked here. The call reports it. */
function problemsOf(check: Schema | undefined, value: unknown): SchemaProblem[] {
  try {
    // clone, because the check fills in defaults
    return check?.check(structuredClone(value)) ?? []
  } catch {
    return []
  }
}

/** Caches compiled parts of schemas, because a definition has thousands of nodes. */
const wholes = new WeakMap<Tree, WeakMap<Tree, Schema>>()
const outsides = new WeakMap<Tree, Schema>()

/** References that resolve differently in a part of the schema. */
const ELSEWHERE = /"\$(?:ref|dynamicRef|recursiveRef)":"(?!#\/(?:\$defs|definitions)\/)|"\$id":"/

function wholeOf(root: Tree, part: Tree): Schema | undefined {
  const made = wholes.get(root) ?? new WeakMap<Tree, Schema>()
  wholes.set(root, made)
  const there = made.get(part)
  if (there || (part !== root && ELSEWHERE.test(JSON.stringify(root)))) return there
  const check = schema(part === root ? part : { ...part, ...named(root, ['$defs', 'definitions']) }, { regExp })
  made.set(part, check)
  return check
}

/** A schema reduced to the existence and number of keys, without their values. */
function outsideOf(part: Tree): Schema {
  const made = outsides.get(part) ?? schema(outside(part), { regExp })
  outsides.set(part, made)
  return made
}

function outside(part: Tree): JsonSchema {
  const { properties, patternProperties, additionalProperties } = part
  const names = isTree(properties) ? { properties: Object.fromEntries(Object.entries(properties).map(defaultAlone)) } : {}
  const isClosed = additionalProperties === false && patternProperties === undefined
  return {
    ...named(part, ['type', 'required', 'minProperties', 'maxProperties', 'minItems', 'maxItems']),
    ...names,
    ...(isClosed ? { additionalProperties: false } : {}),
  }
}

/** Keeps the default of a key, so that the key counts as present. */
const defaultAlone = ([key, item]: readonly [string, unknown]) =>
  [key, isTree(item) && 'default' in item ? { default: item.default } : true] as const

const named = (from: Tree, keys: readonly string[]) =>
  Object.fromEntries(keys.flatMap(key => (Object.hasOwn(from, key) ? [[key, from[key]]] : [])))
