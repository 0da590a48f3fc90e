import { createRequire } from 'node:module'
import { LRUCache } from 'lru-cache'
import type { RE2JS } from 're2js'

/** Caches the results of `make` by text. Failures are not cached. */
export function kept<T extends {}>(most: number, make: (text: string) => T): (text: string) => T {
  const ready = new LRUCache<string, T>({ max: most })
  return text => {
    const there = ready.get(text)
    if (there !== undefined) return there
    const made = make(text)
    ready.set(text, made)
    return made
  }
}

/** Maximum length of a pattern, and of its compiled program, because compilation takes time, too. */
const [MAX_PATTERN, LARGEST] = [1_000, 5_000]
/** Maximum number of cached patterns. */
const KEPT_PATTERNS = 200

/** A regular expression with linear running time. */
export interface Pattern {
  test(text: string): boolean
  /** Maximum cost of a character. */
  readonly size: number
}

// loaded at first use, because loading takes 8 ms
let engine: typeof RE2JS | undefined

/** Compiles a JavaScript regular expression. Throws if it is invalid, too large, or cannot run in linear time (look-around, back-references). */
export const pattern: (text: string) => Pattern = kept(KEPT_PATTERNS, compiledPattern)

function compiledPattern(text: string): Pattern {
  if (text.length > MAX_PATTERN) throw new RangeError('the pattern is too long')
  engine ??= (createRequire(import.meta.url)('re2js') as { readonly RE2JS: typeof RE2JS }).RE2JS
  const made = engine.compile(engine.translateRegExp(text))
  const size = made.programSize()
  if (size > LARGEST) throw new RangeError('the pattern is too large')
  return { size, test: value => made.test(value) }
}

/** For `schema(…, { regExp })`. Does not check patterns that cannot run in linear time. */
export const regExp = Object.assign((text: string) => ({ test: testOf(text), toString: () => text }), { code: 'linear' })

function testOf(text: string): (value: string) => boolean {
  try {
    const made = pattern(text)
    return value => made.test(value)
  } catch {
    return () => true
  }
}
