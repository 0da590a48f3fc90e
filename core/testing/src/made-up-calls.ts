import assert from 'node:assert/strict'
import { codeOf, type JsonSchema, messageOf } from '@svc/core'
import type { Json } from '@svc/core/contracts'
import { atOnce, compileSchema, outcome } from './kit-case.ts'
import { madeUp, randomOf } from './made-up.ts'
import type { PluginKitOptions } from './plugin-samples.ts'

const ROUNDS = 50
/** More tries than this for one value, and its schema asks for what nobody can make up. */
const TRIES = 20

/** Values that fit a JSON Schema, the same for the same seed; fewer where they are hard to make. */
export function fitting(json: JsonSchema, { seed = 1, rounds = ROUNDS }: PluginKitOptions): Json[] {
  const fits = compileSchema(json, 'the schema')
  const random = randomOf(seed)
  const values = Array.from({ length: rounds * TRIES }, () => () => madeUp(json, random))
  const found: Json[] = []
  for (const make of values) {
    if (found.length === rounds) break
    const value = make()
    if (fits(structuredClone(value))) found.push(value)
  }
  return found
}

/** What an engine says when a program is wrong, and no author ever writes. */
const CRASH =
  /Cannot (read|set) propert|Cannot destructure|is not a function|is not iterable|is not defined|Maximum call stack|Cannot convert undefined/

/** How work ends: with a value, or with an error that somebody wrote. */
export async function soundEnd<T>(work: Promise<T>, what: string): Promise<{ readonly value?: T; readonly error?: unknown }> {
  const { value, error, failed } = await atOnce(outcome(work), `the end of ${what}`)
  if (!failed) return { value: value as T }
  assert.doesNotMatch(messageOf(error), CRASH, `${what}: it broke: ${messageOf(error)}`)
  return { error }
}

/** That an error has a code of one of these. */
export const assertCode = (error: unknown, codes: readonly string[], what: string): void =>
  assert.ok(
    codes.includes(codeOf(error) ?? ''),
    `${what}: failed with ${codeOf(error) ?? 'no code'}, expected ${codes.join(' or ')}: ${messageOf(error)}`
  )
