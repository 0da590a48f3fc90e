import { createHash } from 'node:crypto'
import type { Json } from '@svc/core/contracts'
import { stripData, type Stripped, stripWords } from '@svc/plugin-kit'
import type { McpLimits } from './limits.ts'
import { headersOf, type ParamHeader } from './param-headers.ts'
import type { McpToolSchema } from './tool-schema.ts'
import { readToolUi } from './tool-ui.ts'

/** A tool as its server describes it, without hidden characters. */
export interface ListedTool extends McpToolSchema {
  /** SHA-256 of this description. */
  readonly hash: string
  /** The characters that were removed, by place: `description U+200B × 3`. */
  readonly stripped: readonly string[]
  /** Arguments that a stateless HTTP request repeats in its headers. */
  readonly paramHeaders: readonly ParamHeader[]
}

type ToolBounds = Pick<McpLimits, 'schemaDepth' | 'toolBytes'>

type JsonRecord = { readonly [key: string]: Json | undefined }
const NAME_LENGTH = 128

/** Reads a tool from the list of a server. Returns a message if the tool is invalid or exceeds a limit. */
export function readTool(raw: unknown, bounds: ToolBounds): ListedTool | string {
  if (!isObject(raw) || typeof raw['name'] !== 'string' || raw['name'] === '') return 'a tool has no name'
  const name = stripWords(raw['name'])
  const label = `tool ${JSON.stringify(name.text.slice(0, NAME_LENGTH))}`
  if (raw['name'].length > NAME_LENGTH) return `${label}: its name is longer than ${NAME_LENGTH} characters`
  if (name.found.length > 0) return `${label}: its name contains hidden characters (${name.found.join(', ')})`
  const problem = problemOf(raw, bounds)
  return problem === undefined ? listed(raw['name'], raw) : `${label}: ${problem}`
}

function problemOf(raw: JsonRecord, { schemaDepth, toolBytes }: ToolBounds): string | undefined {
  if (!isObject(raw['inputSchema'])) return 'it has no input schema'
  for (const key of ['outputSchema', 'annotations'])
    if (raw[key] !== undefined && !isObject(raw[key])) return `its ${key} is not an object`
  for (const key of ['title', 'description'])
    if (raw[key] !== undefined && typeof raw[key] !== 'string') return `its ${key} is not a string`
  // first: the functions below are recursive
  if (deeper(raw, schemaDepth)) return `its schemas are deeper than ${schemaDepth} levels`
  if (JSON.stringify(raw).length > toolBytes) return `it is larger than ${toolBytes} bytes`
  const headers = headersOf(raw['inputSchema'])
  return typeof headers === 'string' ? headers : undefined
}

function listed(name: string, raw: JsonRecord): ListedTool {
  const stripped: string[] = []
  const note = (place: string, { text, found }: Stripped) => {
    if (found.length > 0) stripped.push(`${place} ${found.join(', ')}`)
    return text
  }
  const schema = {
    name,
    ...(raw['title'] !== undefined && { title: note('title', stripWords(raw['title'] as string)) }),
    description: note('description', stripWords((raw['description'] as string | undefined) ?? '')),
    inputSchema: cleaned(raw['inputSchema'], 'inputSchema', note) as JsonRecord,
    ...(raw['outputSchema'] !== undefined && { outputSchema: cleaned(raw['outputSchema'], 'outputSchema', note) as JsonRecord }),
    ...(raw['annotations'] !== undefined && { annotations: cleaned(raw['annotations'], 'annotations', note) as JsonRecord }),
    ...readToolUi(raw['_meta']),
  } satisfies McpToolSchema
  const headers = headersOf(schema.inputSchema)
  return { ...schema, hash: hashOf(schema), stripped, paramHeaders: typeof headers === 'string' ? [] : headers }
}

const WORDS = new Set(['title', 'description', '$comment'])

/** Removes hidden characters from the strings and keys of a value. */
function cleaned(value: Json | undefined, place: string, note: (place: string, stripped: Stripped) => string): Json | undefined {
  if (typeof value === 'string')
    return note(place, WORDS.has(place.slice(place.lastIndexOf('.') + 1)) ? stripWords(value) : stripData(value))
  if (Array.isArray(value)) return value.map((item, at) => cleaned(item, `${place}[${at}]`, note) ?? null)
  if (!isObject(value)) return value
  const entries = Object.entries(value).map(([key, item]) => {
    const clean = note(place, stripData(key))
    return [clean, cleaned(item, `${place}.${clean}`, note)] as const
  })
  return Object.fromEntries(entries)
}

/** Whether a value is nested more than `most` levels deep. Recursion stops at that depth. */
export function deeper(value: unknown, most: number): boolean {
  if (!isNested(value)) return false
  if (most < 0) return true
  for (const item of Object.values(value)) if (deeper(item, most - 1)) return true
  return false
}

const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null
const isObject = (value: unknown): value is JsonRecord => isNested(value) && !Array.isArray(value)

const PINNED = ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations', 'ui'] as const

/** Returns only the fields of a tool that its pin covers. */
export const pinnedOf = (tool: McpToolSchema): McpToolSchema =>
  Object.fromEntries(PINNED.flatMap(key => (tool[key] === undefined ? [] : [[key, tool[key]]]))) as unknown as McpToolSchema

/** Returns the SHA-256, in hex, of name, title, description, schemas, annotations and app of a tool. The order of keys has no effect. */
export const hashOf = (tool: McpToolSchema): string =>
  createHash('sha256')
    .update(canonical(pinnedOf(tool)))
    .digest('hex')

/** Returns JSON with sorted keys. It is recursive: check the depth of an untrusted value first. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(item => canonical(item ?? null)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const entries = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, entry]) => `${JSON.stringify(key)}:${canonical(entry)}`).join(',')}}`
}

/** Limits, in characters, of a whole difference, of one value and of a path. The server chooses how long its texts are. */
const MAX_DIFFERENCE = 20_000
const MAX_VALUE = 2_000
const MAX_PATH = 200
/** Longer values are shown without the part that both have, except for some characters of context. */
const MAX_WHOLE = 200
const CONTEXT = 40

/**
 * Describes the changes of a tool for a person, one per line: `description: "…" → "…"`. Long texts are shortened to the part that changed. The last line counts
 * the changes that exceed the limit.
 */
export function differenceOf(before: McpToolSchema, after: McpToolSchema): readonly string[] {
  const lines: string[] = []
  let [left, more] = [MAX_DIFFERENCE, 0]
  for (const line of changes('', pinnedOf(before), pinnedOf(after))) {
    left -= line.length
    if (left >= 0) lines.push(line)
    else more++
  }
  return more === 0 ? lines : [...lines, `… and ${more} more; use --json to show the whole tool`]
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function* changes(path: string, before: unknown, after: unknown): Generator<string> {
  if (isPlain(before) && isPlain(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
      yield* changes(path === '' ? key : `${path}.${key}`, own(before, key), own(after, key))
    return
  }
  if (canonical(before) === canonical(after) && (before === undefined) === (after === undefined)) return
  const place = path.length <= MAX_PATH ? path : `${path.slice(0, MAX_PATH)}…`
  if (before === undefined) yield `${place}: new: ${cut(JSON.stringify(after))}`
  else if (after === undefined) yield `${place}: gone: ${cut(JSON.stringify(before))}`
  else yield `${place}: ${betweenOf(JSON.stringify(before), JSON.stringify(after))}`
}

const own = (value: Record<string, unknown>, key: string) => (Object.hasOwn(value, key) ? value[key] : undefined)

/** Shows two texts, or the part in which two long texts differ: an approver must see a change wherever it is. */
function betweenOf(before: string, after: string): string {
  const least = Math.min(before.length, after.length)
  let [begin, end] = [0, 0]
  while (begin < least && before[begin] === after[begin]) begin++
  while (end < least - begin && before.at(-1 - end) === after.at(-1 - end)) end++
  const [from, till] = [Math.max(0, begin - CONTEXT), Math.max(0, end - CONTEXT)]
  const part = (text: string) =>
    text.length <= MAX_WHOLE ? text : `${from > 0 ? '…' : ''}${cut(text.slice(from, text.length - till))}${till > 0 ? '…' : ''}`
  return `${part(before)} → ${part(after)}`
}

const cut = (text: string): string =>
  text.length <= MAX_VALUE ? text : `${text.slice(0, MAX_VALUE)}… (${text.length - MAX_VALUE} more characters)`
