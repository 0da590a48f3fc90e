import { toJson } from './to-json.ts'

type Binary = (a: number | bigint, b: number | bigint) => unknown
const both = (does: (a: number, b: number) => unknown): Binary => (a, b) => does(Number(a), Number(b))

/** Numbers of JSON are doubles, those of an expression may be written as integers: they mix. */
export const NUMBERS: readonly (readonly [string, Binary])[] = [
  ['+', both((a, b) => a + b)] as const,
  ['-', both((a, b) => a - b)] as const,
  ['*', both((a, b) => a * b)] as const,
  ['/', both((a, b) => a / b)] as const,
  ['%', both((a, b) => a % b)] as const,
  ['==', both((a, b) => a === b)] as const,
].flatMap(([sign, does]) => [[`double ${sign} int`, does] as const, ...(sign === '==' ? [] : [[`int ${sign} double`, does] as const])])

/** What expressions can call beside what CEL has. */
export const FUNCTIONS: readonly { readonly signature: string; readonly does: (...args: never[]) => unknown; readonly description: string }[] = [
  { signature: 'json(dyn): string', does: (value: unknown) => JSON.stringify(toJson(value)), description: 'a value as JSON' },
  { signature: 'parse_json(string): dyn', does: (text: string) => JSON.parse(text) as unknown, description: 'the value of a JSON text' },
]
