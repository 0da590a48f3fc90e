// Loaded only for schemas with a pattern, because loading the engine takes 8 ms.
import { svcError } from '@svc/core'
import { RE2JS } from 're2js'

/** Maximum length of a pattern and of its program. Larger ones are not checked, because compilation takes time, too. */
const LONGEST = 1_000
const LARGEST = 5_000
/** Maximum steps of the engine in a check: at worst half a second. */
const STEPS = 50_000_000

let left = 0

/** Whether a JavaScript pattern can be checked in linear time. */
export function isReadable(pattern: string): boolean {
  try {
    return pattern.length <= LONGEST && compile(pattern).programSize() <= LARGEST
  } catch {
    return false
  }
}

const compile = (pattern: string) => RE2JS.compile(RE2JS.translateRegExp(pattern))

/** For `schema(…, { regExp })`. `bounded` runs its tests. */
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
    // ajv distinguishes patterns by this text
    toString: () => pattern,
  }
}

/** Runs a check with a step limit for all of its patterns. */
export function bounded<T>(check: () => T): T {
  left = STEPS
  return check()
}

const tooLong = () =>
  svcError('ARGUMENTS_TOO_LONG', 'the arguments are too long for the patterns of the schema', { hint: 'Shorten the arguments' })
