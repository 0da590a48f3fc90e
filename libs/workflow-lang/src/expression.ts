import type { Environment, ParseResult } from '@marcbachmann/cel-js'
import { messageOf, svcError } from '@svc/core'
import type { Json } from '@svc/core/contracts'
import { bounded, isTooLong, toJson } from './budget.ts'
import { FUNCTIONS, GUARDS, NUMBERS } from './functions.ts'
import { guarded } from './syntax.ts'
import { kept } from './patterns.ts'
import { cel } from './late.ts'

/** What expressions can name. */
export type Scope = Readonly<Record<string, unknown>>

/** An expression, ready to be evaluated. Throws EXPRESSION_FAILED. */
export type Expression = (scope: Scope) => Json

const LIMITS = { maxAstNodes: 2_000, maxDepth: 60, maxListElements: 1_000, maxMapEntries: 1_000, maxCallArguments: 16 }
/** Guarded texts have calls and parentheses round what was written. */
export const GUARDED_LIMITS = { ...LIMITS, maxAstNodes: 20_000, maxDepth: 400 }
/** A longer one is refused. */
const LONGEST = 20_000
/** So many expressions are kept ready; a definition of any size still runs. */
const KEPT = 5_000

const OPTIONS = { unlistedVariablesAreDyn: true, homogeneousAggregateLiterals: false, enableOptionalTypes: true }

/** The expression language (CEL) as workflows have it; `checked`: what is not told of is an error. */
export function environment({ checked = false, limits = LIMITS } = {}): Environment {
  const env = new (cel().Environment)({ ...OPTIONS, unlistedVariablesAreDyn: !checked, limits })
  for (const [signature, does] of NUMBERS) env.registerOperator(signature, does)
  for (const { signature, does, description } of FUNCTIONS) env.registerFunction(signature, does, { description })
  return env
}

let written: Environment | undefined
let guards: Environment | undefined

/** Makes an expression of its text. Throws EXPRESSION_INVALID for one that cannot be read. */
export const expression: (text: string) => Expression = kept(KEPT, compiledExpression)

function compiledExpression(text: string): Expression {
  const evaluate = guardedEnvironment().parse(guarded(parsed(text).ast))
  const once = (scope: Scope) => bounded(() => toJson(evaluate(scope)))
  return scope => {
    try {
      return once(scope)
    } catch (error) {
      return again(text, scope, error, once)
    }
  }
}

/** Once more where it was the keys of the data that the engine stumbled over. Throws EXPRESSION_FAILED. */
function again(text: string, scope: Scope, error: unknown, evaluate: Expression): Json {
  const fixed = withOddKeys(scope) as Scope
  if (fixed === scope) throw expressionFailed(text, error)
  try {
    return evaluate(fixed)
  } catch (last) {
    throw expressionFailed(text, last)
  }
}

function guardedEnvironment(): Environment {
  if (guards) return guards
  const env = environment({ limits: GUARDED_LIMITS })
  for (const { signature, does, description } of GUARDS) env.registerFunction(signature, does, { description })
  guards = env
  return env
}

/** Reads an expression. Throws EXPRESSION_INVALID. */
export function parsed(text: string): ParseResult {
  written ??= environment()
  try {
    if (text.length > LONGEST) throw new RangeError(`it has more than ${LONGEST} characters`)
    return written.parse(text)
  } catch (error) {
    throw expressionInvalid(text, error)
  }
}

/** The first line: the others point at the place with a caret. */
export const firstLine = (error: unknown) =>
  messageOf(error)
    .split('\n')[0]!
    .replaceAll(/\b_(?=[a-z]+\()/gi, '')

const WORDS: readonly (readonly [RegExp, string])[] = [
  [/\band\b/, 'write && for and'],
  [/\bor\b/, 'write || for or'],
  [/\bnot\b/, 'write ! for not'],
  [/\$\{\{/, 'it is an expression already: write it without ${{ }}'],
  [/[^=!<>]=[^=]/, 'write == to compare'],
]

const HELP = 'it is CEL: a.b, a["b"], == != < <= > >= && || ! in, has(a.b), size(a), a ? b : c, list.map(x, …), list.filter(x, …)'

/** What may have been meant. */
const hintOf = (text: string): string => WORDS.find(([wrong]) => wrong.test(text))?.[1] ?? HELP

const shortOf = (text: string) => (text.length > 200 ? `${text.slice(0, 200)}…` : text)

const expressionInvalid = (text: string, error: unknown) =>
  svcError('EXPRESSION_INVALID', `"${shortOf(text)}" is no expression: ${firstLine(error)}`, { hint: hintOf(text) })

const MISSING = 'ask with has(a.b), or give a value of its own with a.?b.orValue(…), where a key may be missing'

const expressionFailed = (text: string, error: unknown) =>
  svcError('EXPRESSION_FAILED', `"${shortOf(text)}" has no value: ${firstLine(error)}`, {
    details: { expression: shortOf(text) },
    hint: isTooLong(error) ? 'loop over less, or do it in a node of type compute' : MISSING,
  })

/** The engine of expressions asks an object for its `constructor` to know what it is, and data may have a key of that name. Those are given to it as maps. */
function withOddKeys(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Map) return value
  if (Array.isArray(value)) return sameOr(value, value.map(withOddKeys))
  const entries = Object.entries(value)
  const made = entries.map(([key, one]) => [key, withOddKeys(one)] as const)
  if (Object.hasOwn(value, 'constructor')) return new Map(made)
  return made.some(([, one], at) => one !== entries[at]![1]) ? Object.fromEntries(made) : value
}

const sameOr = (list: readonly unknown[], made: readonly unknown[]) => (made.some((one, at) => one !== list[at]) ? made : list)
