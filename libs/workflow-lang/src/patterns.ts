import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'

/** Makes a thing of a text once and keeps it ready; with so many kept all are made anew. What cannot be made is tried again. */
export function kept<T>(most: number, make: (text: string) => T): (text: string) => T {
  const ready = new Map<string, T>()
  return text => {
    const there = ready.get(text)
    if (there !== undefined) return there
    const made = make(text)
    if (ready.size >= most) ready.clear()
    ready.set(text, made)
    return made
  }
}

/** A longer pattern, and one that becomes a larger program, is refused: making it takes its time too. */
const [MAX_PATTERN, LARGEST] = [1_000, 5_000]
/** So many patterns are kept ready. */
const KEPT_PATTERNS = 200

/** A regular expression that takes linear time, whatever it says. */
export interface Pattern {
  test(text: string): boolean
  /** What a character costs it at worst. */
  readonly size: number
}

// the engine takes 8 ms to load: for those who have a pattern
let engine: typeof RE2JS | undefined

/** Makes a pattern of what JavaScript calls a regular expression. Throws for one that is none, is too large, or cannot be linear (look-around, back-references). */
export const pattern: (text: string) => Pattern = kept(KEPT_PATTERNS, compiledPattern)

function compiledPattern(text: string): Pattern {
  if (text.length > MAX_PATTERN) throw new RangeError('the pattern is too long')
  engine ??= (createRequire(import.meta.url)('re2js') as { readonly RE2JS: typeof RE2JS }).RE2JS
  const made = engine.compile(engine.translateRegExp(text))
  const size = made.programSize()
  if (size > LARGEST) throw new RangeError('the pattern is too large')
  return { size, test: value => made.test(value) }
}

/** For `schema(…, { regExp })`; what cannot be linear is not checked here. */
export const regExp = Object.assign((text: string) => ({ test: testOf(text), toString: () => text }), { code: 'linear' })

function testOf(text: string): (value: string) => boolean {
  try {
    const made = pattern(text)
    return value => made.test(value)
  } catch {
    return () => true
  }
}
