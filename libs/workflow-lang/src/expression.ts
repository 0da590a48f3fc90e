import type { Environment, ParseResult } from '@marcbachmann/cel-js'
import { messageOf, svcError } from '@svc/core'
import type { Json } from '@svc/core/contracts'
import { bounded, isTooLong, toJson } from './budget.ts'
import { FUNCTIONS, GUARDS, NUMBERS } from './functions.ts'
import { guarded } from './syntax.ts'
import { kept } from './patterns.ts'
import { cel } from './late.ts'

/** Variables of expressions. */
export type ExpressionScope = Readonly<Record<string, unknown>>

/** A compiled expression. Throws EXPRESSION_FAILED. */
export type Expression = (scope: ExpressionScope) => Json

const LIMITS = { maxAstNodes: 2_000, maxDepth: 60, maxListElements: 1_000, maxMapEntries: 1_000, maxCallArguments: 16 }
/** Limits of guarded expressions, which contain additional calls and parentheses. */
export const GUARDED_LIMITS = { ...LIMITS, maxAstNodes: 20_000, maxDepth: 400 }
/** Maximum length of an expression. */
const LONGEST = 20_000
/** Maximum number of cached expressions. */
const KEPT = 5_000

const OPTIONS = { unlistedVariablesAreDyn: true, homogeneousAggregateLiterals: false, enableOptionalTypes: true }

/** The CEL environment of workflows. With `checked`, unknown variables are errors. */
export function environment({ checked = false, limits = LIMITS } = {}): Environment {
  const env = new (cel().Environment)({ ...OPTIONS, unlistedVariablesAreDyn: !checked, limits })
  for (const [signature, does] of NUMBERS) env.registerOperator(signature, does)
  for (const { signature, does, description } of FUNCTIONS) env.registerFunction(signature, does, { description })
  return env
}

let written: Environment | undefined
let guards: Environment | undefined

/** Compiles an expression. Throws EXPRESSION_INVALID. */
export const expression: (text: string) => Expression = kept(KEPT, compiledExpression)

function compiledExpression(text: string): Expression {
  const evaluate = guardedEnvironment().parse(guarded(parsed(text).ast))
  const once = (scope: ExpressionScope) => bounded(() => toJson(evaluate(scope)))
  return scope => {
    try {
      return once(scope)
    } catch (error) {
      return again(text, scope, error, once)
    }
  }
}

/** Evaluates again if odd keys in the data can have caused the error. Throws EXPRESSION_FAILED. */
function again(text: string, scope: ExpressionScope, error: unknown, evaluate: Expression): Json {
  const fixed = withOddKeys(scope) as ExpressionScope
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

/** Parses an expression. Throws EXPRESSION_INVALID. */
export function parsed(text: string): ParseResult {
  written ??= environment()
  try {
    if (text.length > LONGEST) throw new RangeError(`it has more than ${LONGEST} characters`)
    return written.parse(text)
  } catch (error) {
    throw expressionInvalid(text, error)
  }
}

/** The first line of an error message. The others mark the position. */
export const firstLine = (error: unknown) =>
  messageOf(error)
    .split('\n')[0]!
    .replaceAll(/\b_(?=[a-z]+\()/gi, '')

const WORDS: readonly (readonly [RegExp, string])[] = [
  [/\band\b/, 'Write && instead of and'],
  [/\bor\b/, 'Write || instead of or'],
  [/\bnot\b/, 'Write ! instead of not'],
  [/\$\{\{/, 'Write it without ${{ }}, because the setting is already an expression'],
  [/[^=!<>]=[^=]/, 'Write == to compare'],
]

const HELP = 'Write CEL: a.b, a["b"], == != < <= > >= && || ! in, has(a.b), size(a), a ? b : c, list.map(x, …), list.filter(x, …)'

/** A hint for an invalid expression. */
const hintOf = (text: string): string => WORDS.find(([wrong]) => wrong.test(text))?.[1] ?? HELP

const shortOf = (text: string) => (text.length > 200 ? `${text.slice(0, 200)}…` : text)

const expressionInvalid = (text: string, error: unknown) =>
  svcError('EXPRESSION_INVALID', `"${shortOf(text)}" is not a valid expression: ${firstLine(error)}`, { hint: hintOf(text) })

const MISSING = 'If a key can be missing, test it with has(a.b), or set a default with a.?b.orValue(…)'

const expressionFailed = (text: string, error: unknown) =>
  svcError('EXPRESSION_FAILED', `"${shortOf(text)}" failed: ${firstLine(error)}`, {
    details: { expression: shortOf(text) },
    hint: isTooLong(error) ? 'Loop over fewer items, or use a node of type compute' : MISSING,
  })

/** Converts objects with a key `constructor` to maps, because the expression engine reads `constructor` to find the type of an object. */
function withOddKeys(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Map) return value
  if (Array.isArray(value)) return sameOr(value, value.map(withOddKeys))
  const entries = Object.entries(value)
  const made = entries.map(([key, entry]) => [key, withOddKeys(entry)] as const)
  if (Object.hasOwn(value, 'constructor')) return new Map(made)
  return made.some(([, item], at) => item !== entries[at]![1]) ? Object.fromEntries(made) : value
}

const sameOr = (list: readonly unknown[], made: readonly unknown[]) => (made.some((item, at) => item !== list[at]) ? made : list)
