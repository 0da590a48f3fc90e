import { go, payDeep, payFlat, spend, textCost, toJson } from './budget.ts'
import { pattern } from './patterns.ts'

type Binary = (a: number | bigint, b: number | bigint) => unknown
const both =
  (does: (a: number, b: number) => unknown): Binary =>
  (a, b) =>
    does(Number(a), Number(b))

/** Operators that mix doubles, as in JSON, with integers, as written in expressions. */
export const NUMBERS: readonly (readonly [string, Binary])[] = [
  ...(
    [
      ['+', both((a, b) => a + b)],
      ['-', both((a, b) => a - b)],
      ['*', both((a, b) => a * b)],
      ['/', both((a, b) => a / b)],
      ['%', both((a, b) => a % b)],
    ] as const
  ).flatMap(([sign, does]) => [[`double ${sign} int: double`, does] as const, [`int ${sign} double: double`, does] as const]),
  ['double % double: double', both((a, b) => a % b)],
  ['double == int: bool', both((a, b) => a === b)],
]

interface Function {
  readonly signature: string
  readonly does: (...args: never[]) => unknown
  readonly description: string
}

/** Functions in addition to those of CEL. */
export const FUNCTIONS: readonly Function[] = [
  {
    signature: 'json(dyn): string',
    does: (value: unknown) => JSON.stringify(toJson(value)),
    description: 'converts a value to JSON',
  },
  {
    signature: 'parse_json(string): dyn',
    does: (text: string) => JSON.parse(text) as unknown,
    description: 'parses JSON',
  },
]

const paid = (pay: (value: unknown) => void) => (value: unknown) => {
  pay(value)
  return value
}

/** Functions that guarded expressions call; see syntax.ts. */
export const GUARDS: readonly Function[] = [
  { signature: '_flat(dyn): dyn', does: paid(payFlat), description: 'adds the cost of a text, or of keys' },
  { signature: '_deep(dyn): dyn', does: paid(payDeep), description: 'adds the cost of a whole value' },
  {
    signature: '_left(int): bool',
    does: (units: bigint) => go(Number(units)),
    description: 'adds a cost, and returns whether the limit is not exceeded',
  },
  { signature: '_go(int): bool', does: asked, description: 'adds a cost, and throws if the limit is exceeded' },
  { signature: '_index(dyn): dyn', does: indexOf, description: 'converts an index of a list from a double' },
  { signature: 'string._matches(string): bool', does: matches, description: 'matches, in linear time' },
  {
    signature: 'string._contains(string): bool',
    does: (text: string, part: string) => searched(text, part).includes(part),
    description: 'contains, with its cost',
  },
  {
    signature: 'string._indexOf(string): int',
    does: (text: string, part: string) => BigInt(searched(text, part).indexOf(part)),
    description: 'indexOf, with its cost',
  },
  {
    signature: 'string._indexOf(string, int): int',
    does: (text: string, part: string, from: bigint) => BigInt(searched(text, part).indexOf(part, placeIn(text, from))),
    description: 'indexOf, with its cost',
  },
  {
    signature: 'string._lastIndexOf(string): int',
    does: (text: string, part: string) => BigInt(searched(text, part).lastIndexOf(part)),
    description: 'lastIndexOf, with its cost',
  },
  {
    signature: 'string._lastIndexOf(string, int): int',
    does: (text: string, part: string, from: bigint) => BigInt(searched(text, part).lastIndexOf(part, placeIn(text, from))),
    description: 'lastIndexOf, with its cost',
  },
  { signature: 'string._split(string): list<string>', does: split, description: 'split, with its cost' },
  { signature: 'string._split(string, int): list<string>', does: split, description: 'split, with its cost' },
  { signature: 'list._join(): string', does: joined, description: 'join, with its cost' },
  { signature: 'list._join(string): string', does: joined, description: 'join, with its cost' },
]

/** Methods whose cost or result can exceed the size of their arguments. */
export const PRODUCTS: ReadonlySet<string> = new Set(['matches', 'contains', 'indexOf', 'lastIndexOf', 'split', 'join'])

/** V8 searches a short text character by character at worst, and skips 250 characters at once for a long one. */
const [SHORT, PER_SHORT, PER_LONG] = [256, 16, 256]

/** Adds the cost of a search, which is the product of both lengths at worst. */
function searched(text: string, part: string): string {
  spend(textCost(text) * (1 + Math.min(part.length, SHORT) / PER_SHORT + part.length / PER_LONG))
  return text
}

function placeIn(text: string, from: bigint): number {
  const at = Number(from)
  if (at < 0 || at >= text.length) throw new RangeError('fromIndex out of range')
  return at
}

function split(text: string, separator: string, most = -1n): string[] {
  spend(searched(text, separator).length / Math.max(1, separator.length))
  if (most === 0n) return []
  const parts = text.split(separator)
  const limit = Number(most)
  return limit < 0 || parts.length <= limit ? parts : [...parts.slice(0, limit - 1), parts.slice(limit - 1).join(separator)]
}

function joined(list: readonly unknown[], separator = ''): string {
  payDeep(list)
  spend(list.length * textCost(separator))
  if (!list.every(item => typeof item === 'string')) throw new TypeError('join: list must contain only strings')
  return list.join(separator)
}

function asked(units: bigint): boolean {
  spend(Number(units))
  return true
}

function indexOf(value: unknown) {
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value
}

function matches(text: string, expression: string): boolean {
  const made = pattern(expression)
  spend(textCost(text) * Math.max(1, made.size / 4))
  return made.test(text)
}
