import type { CallContext } from '@svc/core'
import type { Tool, ToolResult } from '@svc/core/contracts'

/** A tool whose `call` names the type of its arguments. */
export interface TypedTool<A> extends Omit<Tool, 'call'> {
  call(args: A, ctx: CallContext): Promise<ToolResult>
}

/**
 * Makes a tool of one with typed arguments: `toolOf<{ readonly path: string }>({ …, async call({ path }, ctx) { … } })`. The type says what `parameters`
 * let through, by which the caller has checked them. An aborted call does not start.
 */
export const toolOf = <A extends object>(tool: TypedTool<A>): Tool => ({
  ...tool,
  async call(args, ctx) {
    ctx.signal.throwIfAborted()
    return tool.call(args as unknown as A, ctx)
  },
})

/** An answer: text for the model, by lines, and the same as data. */
export const answerOf = (text: string | readonly string[], structured?: ToolResult['structured']): ToolResult => ({
  content: [{ type: 'text', text: typeof text === 'string' ? text : text.join('\n') }],
  ...(structured === undefined ? {} : { structured }),
})

/** JSON Schema of an object with these properties and no others; all are required but those named in `optional`. */
export const objectOf = <P extends Readonly<Record<string, object>>>(
  properties: P,
  optional: readonly (keyof P & string)[] = []
) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter(name => !optional.includes(name)),
  additionalProperties: false,
})

/** Text without its hidden characters, and which they were. */
export interface Stripped {
  readonly text: string
  /** How often each was there: `U+200B × 3`. */
  readonly found: readonly string[]
}

/** Characters that are invisible to people and read by models: controls, direction marks, variation selectors above the common ones, the tags block, fillers. */
const SMUGGLING =
  '\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufff9-\\ufffb\\u{e0000}-\\u{e0fff}\\u{1d173}-\\u{1d17a}'
/** These join letters or shape emoji in what people write, and may be part of a value. */
const SHAPING =
  '\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200d\\u2028\\u2029\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0'

const IN_WORDS = new RegExp(`[${SMUGGLING}${SHAPING}]`, 'gu')
const IN_DATA = new RegExp(`[${SMUGGLING}]`, 'gu')
/** Emoji that are one sign of several, their form, and letters of scripts that are not written right without joiners or marks between words. */
const EMOJI = '\\p{Extended_Pictographic}'
const JOINING =
  '\\p{Script=Arabic}\\p{Script=Syriac}\\p{Script=Devanagari}\\p{Script=Bengali}\\p{Script=Gurmukhi}\\p{Script=Gujarati}\\p{Script=Oriya}\\p{Script=Tamil}\\p{Script=Telugu}\\p{Script=Kannada}\\p{Script=Malayalam}\\p{Script=Sinhala}\\p{Script=Khmer}\\p{Script=Myanmar}'
const UNSPACED = '\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}'
const IN_USE = [
  `(?<=[${EMOJI}\\ufe0f\\u{1f3fb}-\\u{1f3ff}])\\u200d(?=${EMOJI})`,
  `(?<=${EMOJI})[\\ufe0e\\ufe0f]`,
  `(?<=[0-9#*])\\ufe0f(?=\\u20e3)`,
  `(?<=[${JOINING}])[\\u200c\\u200d](?=[${JOINING}])`,
  `(?<=[${UNSPACED}])\\u200b(?=[${UNSPACED}])`,
].join('|')
/** Characters in use are matched first, and stay. */
const IN_RESULTS = new RegExp(`(${IN_USE})|[${SMUGGLING}${SHAPING}]+`, 'gu')

/** Half a surrogate pair shows as nothing, and is no text. */
const LONE = /\p{Surrogate}/gu

/** Takes hidden characters out of words that people read. */
export const stripWords = (text: string): Stripped => strip(text, IN_WORDS)
/** Takes out of a value what can only be there to deceive. */
export const stripData = (text: string): Stripped => strip(text, IN_DATA)

/** Takes hidden characters out of what a tool answers; those stay that an emoji, or a word of its script, needs where they stand. */
export const stripResult = (text: string): Stripped => (PLAIN.test(text) ? { text, found: [] } : strip(text, IN_RESULTS))

/** Most results are plain, and large. */
const PLAIN = /^[\t\n\r\x20-\x7e]*$/

/** The same value, with the texts in it, keys too, as `stripResult` leaves them; `found` hears what was taken out. A value without hidden characters is itself. */
export function stripped<T>(value: T, found: Found): T
export function stripped(value: unknown, found: Found): unknown {
  if (typeof value === 'string') {
    const clean = stripResult(value)
    if (clean.found.length > 0) found(clean.found)
    return clean.text
  }
  if (typeof value !== 'object' || value === null) return value
  return Array.isArray(value) ? strippedList(value, found) : strippedObject(value, found)
}

type Found = (characters: readonly string[]) => void

function strippedList(list: readonly unknown[], found: Found): readonly unknown[] {
  let copy: unknown[] | undefined
  for (let at = 0; at < list.length; at++) {
    const clean = stripped(list[at], found)
    if (clean !== list[at]) (copy ??= [...list])[at] = clean
  }
  return copy ?? list
}

function strippedObject(value: object, found: Found): object {
  let isClean = true
  const entries: [string, unknown][] = []
  for (const [key, item] of Object.entries(value)) {
    const entry: [string, unknown] = [stripped(key, found), stripped(item as unknown, found)]
    isClean &&= entry[0] === key && entry[1] === item
    entries.push(entry)
  }
  return isClean ? value : Object.fromEntries(entries)
}

function strip(text: string, pattern: RegExp): Stripped {
  const found = new Map<string, number>()
  const count = (hidden: string, inUse?: unknown) => {
    if (typeof inUse === 'string') return hidden
    for (const char of hidden) found.set(char, (found.get(char) ?? 0) + 1)
    return ''
  }
  const clean = text.replace(pattern, count).replace(LONE, count)
  return { text: clean, found: [...found].map(([char, times]) => `${codeOf(char)} × ${times}`) }
}

const codeOf = (char: string) => `U+${char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
