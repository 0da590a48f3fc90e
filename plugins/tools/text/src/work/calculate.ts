import { refusal } from '@svc/worker-pool/child'
import { messageOf } from './bounds.ts'

const DIGITS = 15
const FUNCTIONS = ['min', 'max', 'hypot', 'pow', 'atan2', 'roundTo', 'gamma']
/** `log` is left out: half of the world means ln by it, the other half log10. */
const OPERATORS = (
  '- + ! not abs ceil floor round trunc sign sqrt cbrt exp expm1 ln log1p log2 log10 ' +
  'sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh'
).split(' ')
/** Nothing but numbers: no names of one's own, no texts, no lists, no chance. */
const OFF = { assignment: false, fndef: false, concatenate: false, in: false, random: false, length: false }

export async function calculate({ expression }: { expression: string }): Promise<{ result: number | boolean; note?: string }> {
  const value = await valueOf(expression)
  if (typeof value === 'boolean') return { result: value }
  if (typeof value !== 'number') throw invalid('it is no number')
  if (Number.isNaN(value)) throw invalid('there is no such number (like 0 / 0, or the root of -1)')
  if (!Number.isFinite(value)) throw invalid('it is infinite, or too large (above 1.8e308)')
  // 0.1 + 0.2 is 0.3
  const result = Number(value.toPrecision(DIGITS))
  const exact = Number.isInteger(value) && Math.abs(value) > Number.MAX_SAFE_INTEGER
  return exact ? { result: value, note: `only the first ${DIGITS} digits are sure` } : { result }
}

async function valueOf(expression: string): Promise<unknown> {
  const { Parser } = await import('expr-eval-fork')
  const parser = new Parser({ allowMemberAccess: false, operators: OFF })
  const functions = Object.assign(only(parser.functions as object, FUNCTIONS), { gcd: all(gcd), lcm: all(lcm) })
  // public members of the parser, replaced by tables without inherited names: `constructor` is no operator and no constant
  Object.assign(parser, {
    functions,
    unaryOps: only(parser.unaryOps as object, OPERATORS),
    consts: only(parser.consts as object),
  })
  try {
    return parser.evaluate(expression)
  } catch (error) {
    if (error instanceof RangeError) throw error
    throw invalid(messageOf(error))
  }
}

/** Members by their names, and nothing that is inherited. */
const only = (table: object, names = Object.keys(table)): object =>
  Object.assign(Object.create(null), Object.fromEntries(Object.entries(table).filter(([name]) => names.includes(name))))

const gcd = (a: number, b: number): number => (b === 0 ? Math.abs(a) : gcd(b, a % b))
const lcm = (a: number, b: number): number => (a === 0 || b === 0 ? 0 : Math.abs(a / gcd(a, b)) * Math.abs(b))
const all =
  (two: (a: number, b: number) => number) =>
  (...numbers: number[]): number => {
    if (numbers.length === 0 || !numbers.every(Number.isSafeInteger)) throw new Error('gcd and lcm take whole numbers')
    return numbers.reduce(two)
  }

const invalid = (why: string) =>
  refusal('EXPRESSION_INVALID', `the expression cannot be calculated: ${why}`, { hint: 'write arithmetic like (1 + 2) * 3 ^ 2' })
