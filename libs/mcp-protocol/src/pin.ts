import { createHash } from 'node:crypto'
import type { McpToolSchema } from './tool-schema.ts'

const PINNED = ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations'] as const

/** What a pin is about, and nothing else. */
export const pinnedOf = (tool: McpToolSchema): McpToolSchema =>
  Object.fromEntries(PINNED.flatMap(key => (tool[key] === undefined ? [] : [[key, tool[key]]]))) as unknown as McpToolSchema

/** SHA-256, in hex, over name, title, description, schemas and annotations of a tool; the order of keys does not count. */
export const hashOf = (tool: McpToolSchema): string =>
  createHash('sha256')
    .update(canonical(pinnedOf(tool)))
    .digest('hex')

/** JSON with sorted keys. Deep values must be bounded before. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(one => canonical(one ?? null)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const entries = Object.entries(value)
    .filter(([, one]) => one !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, one]) => `${JSON.stringify(key)}:${canonical(one)}`).join(',')}}`
}

/** Characters of one difference, and of one side of a line. A server chooses how much there is to tell. */
const MOST_CHARACTERS = 20_000
const LONGEST = 2_000
const LONGEST_PATH = 200
/** What is longer is shown from shortly before the place where it is another. */
const WHOLE = 200
const AROUND = 40

/**
 * What is new about a tool, for a person: a line each (`description: "…" → "…"`), of long texts the part that is another. Empty where nothing is; what is too much
 * to be told is counted.
 */
export function differenceOf(before: McpToolSchema, after: McpToolSchema): readonly string[] {
  const lines: string[] = []
  let [left, more] = [MOST_CHARACTERS, 0]
  for (const line of changes('', pinnedOf(before), pinnedOf(after))) {
    left -= line.length
    if (left >= 0) lines.push(line)
    else more++
  }
  return more === 0 ? lines : [...lines, `… and ${more} more; with --json the tool is shown as a whole`]
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
  const place = path.length <= LONGEST_PATH ? path : `${path.slice(0, LONGEST_PATH)}…`
  if (before === undefined) yield `${place}: new: ${cut(JSON.stringify(after))}`
  else if (after === undefined) yield `${place}: gone: ${cut(JSON.stringify(before))}`
  else yield `${place}: ${betweenOf(JSON.stringify(before), JSON.stringify(after))}`
}

const own = (value: Record<string, unknown>, key: string) => (Object.hasOwn(value, key) ? value[key] : undefined)

/** Two texts, or of long ones the part in which they differ: what is new must be seen, wherever it stands. */
function betweenOf(before: string, after: string): string {
  const least = Math.min(before.length, after.length)
  let [begin, end] = [0, 0]
  while (begin < least && before[begin] === after[begin]) begin++
  while (end < least - begin && before.at(-1 - end) === after.at(-1 - end)) end++
  const [from, till] = [Math.max(0, begin - AROUND), Math.max(0, end - AROUND)]
  const part = (text: string) =>
    text.length <= WHOLE ? text : `${from > 0 ? '…' : ''}${cut(text.slice(from, text.length - till))}${till > 0 ? '…' : ''}`
  return `${part(before)} → ${part(after)}`
}

const cut = (text: string): string =>
  text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}… (${text.length - LONGEST} more characters)`
