import { go, payDeep, payFlat, spend, textCost, toJson } from './budget.ts'
import { pattern } from './patterns.ts'

type Binary = (a: number | bigint, b: number | bigint) => unknown
const both =
  (does: (a: number, b: number) => unknown): Binary =>
  (a, b) =>
    does(Number(a), Number(b))

/** Numbers of JSON are doubles, those of an expression may be written as integers: they mix. */
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

/** What expressions can call beside what CEL has. */
export const FUNCTIONS: readonly Function[] = [
  { signature: 'json(dyn): string', does: (value: unknown) => JSON.stringify(toJson(value)), description: 'a value as JSON' },
  {
    signature: 'parse_json(string): dyn',
    does: (text: string) => JSON.parse(text) as unknown,
    description: 'the value of a JSON text',
  },
]

const paid = (pay: (value: unknown) => void) => (value: unknown) => {
  pay(value)
  return value
}

/** What guarded expressions call, see guarded.ts. */
export const GUARDS: readonly Function[] = [
  { signature: '_flat(dyn): dyn', does: paid(payFlat), description: 'pays for a text, or for keys' },
  { signature: '_deep(dyn): dyn', does: paid(payDeep), description: 'pays for all of a value' },
  {
    signature: '_left(int): bool',
    does: (units: bigint) => go(Number(units)),
    description: 'pays, and says whether there is something left',
  },
  { signature: '_go(int): bool', does: asked, description: 'pays, and throws when nothing is left' },
  { signature: '_index(dyn): dyn', does: indexOf, description: 'an index of a list, also where it is a number of JSON' },
  { signature: 'string._matches(string): bool', does: matches, description: 'matches, in linear time' },
  {
    signature: 'string._contains(string): bool',
    does: (text: string, part: string) => searched(text, part).includes(part),
    description: 'contains, paid',
  },
  {
    signature: 'string._indexOf(string): int',
    does: (text: string, part: string) => BigInt(searched(text, part).indexOf(part)),
    description: 'indexOf, paid',
  },
  {
    signature: 'string._indexOf(string, int): int',
    does: (text: string, part: string, from: bigint) => BigInt(searched(text, part).indexOf(part, placeIn(text, from))),
    description: 'indexOf, paid',
  },
  {
    signature: 'string._lastIndexOf(string): int',
    does: (text: string, part: string) => BigInt(searched(text, part).lastIndexOf(part)),
    description: 'lastIndexOf, paid',
  },
  {
    signature: 'string._lastIndexOf(string, int): int',
    does: (text: string, part: string, from: bigint) => BigInt(searched(text, part).lastIndexOf(part, placeIn(text, from))),
    description: 'lastIndexOf, paid',
  },
  { signature: 'string._split(string): list<string>', does: split, description: 'split, paid' },
  { signature: 'string._split(string, int): list<string>', does: split, description: 'split, paid' },
  { signature: 'list._join(): string', does: joined, description: 'join, paid' },
  { signature: 'list._join(string): string', does: joined, description: 'join, paid' },
]

/** Methods whose work, or whose answer, is more than the sum of what they are given. */
export const PRODUCTS: ReadonlySet<string> = new Set(['matches', 'contains', 'indexOf', 'lastIndexOf', 'split', 'join'])

/** V8 looks for a short text character by character at worst, and skips 250 at once in a long one. */
const [SHORT, PER_SHORT, PER_LONG] = [256, 16, 256]

/** A text in which a part may be looked for: that takes the product of their lengths at worst. */
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
  if (!list.every(one => typeof one === 'string')) throw new TypeError('join: list must contain only strings')
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
