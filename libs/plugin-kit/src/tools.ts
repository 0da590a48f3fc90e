import type { CallContext } from '@svc/core'
import type { Mode, Tool, ToolResult } from '@svc/core/contracts'

/** A tool whose `call` names the type of its arguments. */
export interface TypedTool<A> extends Omit<Tool, 'call'> {
  call(args: A, ctx: CallContext): Promise<ToolResult>
}

/**
 * Creates a tool from one with typed arguments: `toolOf<{ readonly path: string }>({ …, async call({ path }, ctx) { … } })`. The type must match `parameters`,
 * by which the caller has validated the arguments. An aborted call does not start.
 */
export const toolOf = <A extends object>(tool: TypedTool<A>): Tool => ({
  ...tool,
  async call(args, ctx) {
    ctx.signal.throwIfAborted()
    return tool.call(args as unknown as A, ctx)
  },
})

/** Creates a result: text lines for the model, and the same as data. */
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

/** Whether a mode allows a tool: by the effects of the tool, and by its list of modes. A mode that is not registered has no limits. */
export const modeAllows = (name: string, mode: Mode | undefined, { effects, modes }: Tool): boolean =>
  (!modes || modes.includes(name)) && (!mode || effects.every(effect => mode.effects.includes(effect)))

/** Whether models can call a tool. Some tools of MCP servers are for the apps of their server alone. */
export const isForModels = ({ mcp }: Tool): boolean => mcp?.visibility.includes('model') ?? true

/** Text without its hidden characters, and the removed characters. */
export interface Stripped {
  readonly text: string
  /** The count of each: `U+200B × 3`. */
  readonly found: readonly string[]
}

/** Characters that are invisible to people but visible to models: controls, direction marks, rare variation selectors, the tags block, fillers. */
const SMUGGLING =
  '\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufff9-\\ufffb\\u{e0000}-\\u{e0fff}\\u{1d173}-\\u{1d17a}'
/** These join letters or shape emoji in ordinary text, and can be part of a value. */
const SHAPING =
  '\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200d\\u2028\\u2029\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0'

const IN_WORDS = new RegExp(`[${SMUGGLING}${SHAPING}]`, 'gu')
const IN_DATA = new RegExp(`[${SMUGGLING}]`, 'gu')
/** Emoji sequences, and letters of scripts that need joiners or marks between words. */
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
/** Legitimate uses match first and are kept. */
const IN_RESULTS = new RegExp(`(${IN_USE})|[${SMUGGLING}${SHAPING}]+`, 'gu')

/** Half a surrogate pair is invisible and is not valid text. */
const LONE = /\p{Surrogate}/gu

/** Removes hidden characters from text for people. */
export const stripWords = (text: string): Stripped => strip(text, IN_WORDS)
/** Removes characters from a value that can only deceive. */
export const stripData = (text: string): Stripped => strip(text, IN_DATA)

/** Removes hidden characters from a tool result, except those that an emoji or a word of its script needs. */
export const stripResult = (text: string): Stripped => (PLAIN.test(text) ? { text, found: [] } : strip(text, IN_RESULTS))

/** A fast path: most results are plain and large. */
const PLAIN = /^[\t\n\r\x20-\x7e]*$/

/** Applies `stripResult` to all texts and keys of a value. Calls `found` with the removed characters. Returns the same value if nothing was removed. */
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

/** The properties of `T` without the value `undefined`. */
export type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** Returns the properties that are not `undefined`: `{ ...definedOf({ title }) }` has a title only if there is one. */
export const definedOf = <T extends object>(values: T): Defined<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<T>
