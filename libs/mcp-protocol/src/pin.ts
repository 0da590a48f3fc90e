import { createHash } from 'node:crypto'
import type { McpToolSchema } from './tool-schema.ts'

const PINNED = ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations'] as const

/** Returns only the fields of a tool that its pin covers. */
export const pinnedOf = (tool: McpToolSchema): McpToolSchema =>
  Object.fromEntries(PINNED.flatMap(key => (tool[key] === undefined ? [] : [[key, tool[key]]]))) as unknown as McpToolSchema

/** Returns the SHA-256, in hex, of name, title, description, schemas and annotations of a tool. The order of keys has no effect. */
export const hashOf = (tool: McpToolSchema): string =>
  createHash('sha256')
    .update(canonical(pinnedOf(tool)))
    .digest('hex')

/** Returns JSON with sorted keys. It is recursive: check the depth of an untrusted value first. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(one => canonical(one ?? null)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const entries = Object.entries(value)
    .filter(([, one]) => one !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, one]) => `${JSON.stringify(key)}:${canonical(one)}`).join(',')}}`
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
