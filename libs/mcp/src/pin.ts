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

const MOST_LINES = 50
const LONGEST = 200

/** What is new about a tool, for a person: a line each (`description: "…" → "…"`), at most 50. Empty where nothing is. */
export function differenceOf(before: McpToolSchema, after: McpToolSchema): readonly string[] {
  const lines = [...changes('', pinnedOf(before), pinnedOf(after))]
  return lines.length <= MOST_LINES ? lines : [...lines.slice(0, MOST_LINES), `… and ${lines.length - MOST_LINES} more`]
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
  if (before === undefined) yield `${path}: new: ${shown(after)}`
  else if (after === undefined) yield `${path}: gone: ${shown(before)}`
  else yield `${path}: ${shown(before)} → ${shown(after)}`
}

const own = (value: Record<string, unknown>, key: string) => (Object.hasOwn(value, key) ? value[key] : undefined)

function shown(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`
}
