/** Text without its hidden characters, and which they were. */
export interface Stripped {
  readonly text: string
  /** How often each was there: `U+200B × 3`. */
  readonly found: readonly string[]
}

/** Characters that nobody sees but a model reads: controls, direction marks, variation selectors above the common ones, the tags block, fillers. */
const SMUGGLING =
  '\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufff9-\\ufffb\\u{e0000}-\\u{e0fff}\\u{1d173}-\\u{1d17a}'
/** These join letters or shape emoji in what people write, and may be part of a value. */
const SHAPING =
  '\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200d\\u2028\\u2029\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0'

const IN_WORDS = new RegExp(`[${SMUGGLING}${SHAPING}]`, 'gu')
const IN_DATA = new RegExp(`[${SMUGGLING}]`, 'gu')
/** Half a surrogate pair shows as nothing, and is no text. */
const LONE = /\p{Surrogate}/gu

/** Takes hidden characters out of words that people read. */
export const stripWords = (text: string): Stripped => strip(text, IN_WORDS)
/** Takes out of a value what can only be there to deceive. */
export const stripData = (text: string): Stripped => strip(text, IN_DATA)

function strip(text: string, pattern: RegExp): Stripped {
  const found = new Map<string, number>()
  const count = (char: string) => {
    const code = `U+${char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
    found.set(code, (found.get(code) ?? 0) + 1)
    return ''
  }
  const clean = text.replace(pattern, count).replace(LONE, count)
  return { text: clean, found: [...found].map(([code, times]) => `${code} × ${times}`) }
}
