// Loaded for schemas that hold a pattern: the engine takes 8 ms.
import { svcError } from '@svc/core'
import { RE2JS } from 're2js'

/** A longer pattern, and one that becomes a larger program, is not checked: compiling them takes its time too. */
const LONGEST = 1_000
const LARGEST = 5_000
/** Steps of the engine a check may take at worst: half a second. */
const STEPS = 50_000_000

let left = 0

/** Whether a pattern, as JavaScript writes it, can be checked in linear time. */
export function isReadable(pattern: string): boolean {
  try {
    return pattern.length <= LONGEST && compile(pattern).programSize() <= LARGEST
  } catch {
    return false
  }
}

const compile = (pattern: string) => RE2JS.compile(RE2JS.translateRegExp(pattern))

/** For `schema(…, { regExp })`; its tests are run by `bounded`. */
export const regExp = Object.assign(linear, { code: 'linear' })

function linear(pattern: string) {
  const compiled = compile(pattern)
  const size = compiled.programSize()
  return {
    test(text: string): boolean {
      left -= size * text.length
      if (left < 0) throw tooLong()
      return compiled.test(text)
    },
    // ajv tells patterns apart by it
    toString: () => pattern,
  }
}

/** Runs a check with so many steps for all of its patterns. */
export function bounded<T>(check: () => T): T {
  left = STEPS
  return check()
}

const tooLong = () =>
  svcError('ARGUMENTS_TOO_LONG', 'the arguments are too long for the patterns of the schema', { hint: 'give it less' })
