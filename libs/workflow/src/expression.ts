import { Environment } from '@marcbachmann/cel-js'
import { messageOf, svcError } from '@svc/core'
import type { Json } from '@svc/core/contracts'
import { FUNCTIONS, NUMBERS } from './functions.ts'
import { toJson } from './to-json.ts'

/** What expressions can name. */
export type Scope = Readonly<Record<string, unknown>>

/** An expression, ready to be evaluated. Throws EXPRESSION_FAILED. */
export type Expression = (scope: Scope) => Json

const LIMITS = { maxAstNodes: 2_000, maxDepth: 60, maxListElements: 1_000, maxMapEntries: 1_000, maxCallArguments: 16 }
/** So many expressions are kept ready; a definition of any size still runs. */
const KEPT = 5_000

/** An environment of the expression language (CEL) as workflows have it; what it is not told of is an error where it is `checked`. */
export function environment(checked: boolean): Environment {
  const env = new Environment({
    unlistedVariablesAreDyn: !checked,
    homogeneousAggregateLiterals: false,
    enableOptionalTypes: true,
    limits: LIMITS,
  })
  for (const [signature, does] of NUMBERS) env.registerOperator(signature, does)
  for (const { signature, does, description } of FUNCTIONS) env.registerFunction(signature, does, { description })
  return env
}

let shared: Environment | undefined
const ready = new Map<string, Expression>()

/** Makes an expression of its text. Throws EXPRESSION_INVALID for one that cannot be read. */
export function expression(text: string): Expression {
  const there = ready.get(text)
  if (there) return there
  const made = compiled(text)
  if (ready.size >= KEPT) ready.clear()
  ready.set(text, made)
  return made
}

function compiled(text: string): Expression {
  const parsed = parse(text)
  return scope => {
    try {
      return toJson(parsed(scope))
    } catch (error) {
      throw expressionFailed(text, error)
    }
  }
}

function parse(text: string) {
  shared ??= environment(false)
  try {
    return shared.parse(text)
  } catch (error) {
    throw expressionInvalid(text, error)
  }
}

/** The first line: the others point at the place with a caret. */
const firstLine = (error: unknown) => messageOf(error).split('\n')[0]!

const WORDS: readonly (readonly [RegExp, string])[] = [
  [/\band\b/, 'write && for and'],
  [/\bor\b/, 'write || for or'],
  [/\bnot\b/, 'write ! for not'],
  [/[^=!<>]=[^=]/, 'write == to compare'],
]

/** What may have been meant. */
export const mendOf = (text: string): string =>
  WORDS.find(([pattern]) => pattern.test(text))?.[1] ??
  'it is CEL: a.b, a["b"], == != < <= > >= && || ! in, has(a.b), size(a), a ? b : c, list.map(x, …), list.filter(x, …)'

export const expressionInvalid = (text: string, error: unknown) =>
  svcError('EXPRESSION_INVALID', `"${text.slice(0, 200)}" is no expression: ${firstLine(error)}`, { mend: mendOf(text) })

export const expressionFailed = (text: string, error: unknown) =>
  svcError('EXPRESSION_FAILED', `"${text.slice(0, 200)}" has no value: ${firstLine(error)}`, {
    details: { expression: text.slice(0, 200) },
    mend: 'ask with has(a.b), or give a value of its own with a.?b.orValue(…), where a key may be missing',
  })
