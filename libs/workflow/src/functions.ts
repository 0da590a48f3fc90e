import { go, payDeep, payFlat, spend, textCost } from './budget.ts'
import { pattern } from './patterns.ts'
import { toJson } from './to-json.ts'

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
]

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
