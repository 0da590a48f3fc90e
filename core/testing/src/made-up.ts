import assert from 'node:assert/strict'
import { isAbsolute } from 'node:path'
import { codeOf, type JsonSchema, messageOf } from '@svc/core'
import type { Json } from '@svc/core/contracts'
import { atOnce, compileSchema, outcome } from './kit-case.ts'
import type { PluginKitOptions } from './plugin-package.ts'

/** Random numbers from 0 to 1, reproducible by seed, and the texts of generated values. */
export interface Random {
  (): number
  readonly texts: readonly string[]
}

/** Mulberry32: small, and good enough to find unexpected inputs. */
export function randomOf(seed: number, texts: readonly string[] = TEXTS): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return Object.assign(next, { texts })
}

const pick = <T>(from: readonly T[], random: () => number): T => from[Math.floor(random() * from.length)]!

const PLAIN = 'a few words'

/** Difficult texts: empty, long, other scripts, incomplete pairs, special meanings. */
const TEXTS = [
  PLAIN,
  '',
  ' ',
  '0',
  'null',
  '__proto__',
  '../../../etc/passwd',
  "'; drop table users; --",
  '<b onload=x>&amp;</b>',
  'Grüße, 世界, 👩‍👩‍👧, e\u0301',
  'line one\r\nline two\ttab',
  'a\u0000b\u001b[31mc',
  '${{ input.x }} {{x}} $(id) %s',
  'x'.repeat(10_000),
]
const NUMBERS = [0, 1, -1, 0.5, 2 ** 31, -(2 ** 31), Number.MAX_SAFE_INTEGER, 1e300, -0]
const FORMATS: Readonly<Record<string, string>> = {
  date: '2026-02-28',
  time: '12:30:00Z',
  'date-time': '2026-02-28T12:30:00Z',
  email: 'ada@example.org',
  uri: 'https://example.org/a?b=c',
  uuid: '6f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f9',
  ipv4: '192.0.2.1',
}

interface SchemaKeywords {
  readonly [word: string]: unknown
  readonly type?: string | readonly string[]
  readonly enum?: readonly Json[]
  readonly const?: Json
  readonly default?: Json
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
}

const DEEPEST = 6

/** Generates a value that probably matches a JSON Schema. Callers that need a match must check it. */
export function generate(json: JsonSchema, random: Random, root: JsonSchema = json, depth = 0): Json {
  if (typeof json === 'boolean') return pick([null, true, 1, 'text', []], random)
  const words = json as SchemaKeywords
  if (words.const !== undefined) return words.const
  if (words.enum && words.enum.length > 0) return pick(words.enum, random)
  if (typeof words.$ref === 'string') return depth > DEEPEST ? null : generate(refer(root, words.$ref), random, root, depth + 1)
  const ways = (words.oneOf ?? words.anyOf) as readonly JsonSchema[] | undefined
  if (ways) return generate(pick(ways, random), random, root, depth + 1)
  return ofType(pick([words.type ?? (words.properties ? 'object' : 'string')].flat(), random), words, random, root, depth)
}

function ofType(type: string, words: SchemaKeywords, random: Random, root: JsonSchema, depth: number): Json {
  if (type === 'object') return object(words, random, root, depth)
  if (type === 'array') return list(words, random, root, depth)
  if (type === 'string') return text(words, random)
  if (type === 'integer' || type === 'number') return number(type, words, random)
  return type === 'boolean' ? random() < 0.5 : null
}

function object({ properties = {}, required = [] }: SchemaKeywords, random: Random, root: JsonSchema, depth: number): Json {
  const wanted = Object.entries(properties).filter(([key]) => required.includes(key) || (depth < DEEPEST && random() < 0.6))
  return Object.fromEntries(wanted.map(([key, inner]) => [key, generate(inner, random, root, depth + 1)]))
}

function list(words: SchemaKeywords, random: Random, root: JsonSchema, depth: number): Json {
  const least = Number(words.minItems ?? 0)
  const most = Math.min(Number(words.maxItems ?? 5), least + 5)
  const length = depth > DEEPEST ? least : least + Math.floor(random() * (most - least + 1))
  return Array.from({ length }, () => generate(words.items ?? {}, random, root, depth + 1))
}

function text(words: SchemaKeywords, random: Random): Json {
  const format = FORMATS[String(words.format)]
  if (format !== undefined) return format
  const most = Number(words.maxLength ?? Number.POSITIVE_INFINITY)
  const made = pick(random.texts, random)
  // a path that is cut off is another path
  const some = (isAbsolute(made) && made.length > most ? PLAIN : made).slice(0, most)
  return some.padEnd(Math.min(Number(words.minLength ?? 0), 100_000), 'x')
}

function number(type: string, words: SchemaKeywords, random: Random): Json {
  const least = Number(words.minimum ?? words.exclusiveMinimum ?? Number.NEGATIVE_INFINITY)
  const most = Number(words.maximum ?? words.exclusiveMaximum ?? Number.POSITIVE_INFINITY)
  const fitting = [...NUMBERS, least, most, least + 1, most - 1].filter(
    item => Number.isFinite(item) && item >= least && item <= most && (type === 'number' || Number.isInteger(item))
  )
  return fitting.length > 0 ? pick(fitting, random) : least
}

const refer = (root: JsonSchema, ref: string): JsonSchema =>
  ref
    .split('/')
    .slice(1)
    .reduce<unknown>(
      (at, key) => (at as SchemaKeywords | undefined)?.[key.replaceAll('~1', '/').replaceAll('~0', '~')],
      root
    ) as JsonSchema

const ROUNDS = 50
/** After this many attempts a schema counts as too hard to generate for. */
const TRIES = 20

/** Generates values that match a JSON Schema, reproducible by seed. Returns fewer when matches are hard to generate. */
export function generateMatching(json: JsonSchema, { seed = 1, rounds = ROUNDS }: PluginKitOptions): Json[] {
  const fits = compileSchema(json, 'the schema')
  const random = randomOf(seed)
  const values = Array.from({ length: rounds * TRIES }, () => () => generate(json, random))
  const found: Json[] = []
  for (const make of values) {
    if (found.length === rounds) break
    const value = make()
    if (fits(structuredClone(value))) found.push(value)
  }
  return found
}

/** Messages of the engine that show a programming error. */
const CRASH =
  /Cannot (read|set) propert|Cannot destructure|is not a function|is not iterable|is not defined|Maximum call stack|Cannot convert undefined/

/** Returns the outcome of work, and fails on an error that only the engine can have raised. */
export async function settledOutcome<T>(
  work: Promise<T>,
  what: string
): Promise<{ readonly value?: T; readonly error?: unknown }> {
  const { value, error, failed } = await atOnce(outcome(work), `the end of ${what}`)
  if (!failed) return { value: value as T }
  assert.doesNotMatch(messageOf(error), CRASH, `${what}: it broke: ${messageOf(error)}`)
  return { error }
}

/** Checks that the error has one of these codes. */
export const assertCode = (error: unknown, codes: readonly string[], what: string): void =>
  assert.ok(
    codes.includes(codeOf(error) ?? ''),
    `${what}: failed with ${codeOf(error) ?? 'no code'}, expected ${codes.join(' or ')}: ${messageOf(error)}`
  )
