import type { Json } from '@svc/core/contracts'
import { stripData, stripWords, type Stripped } from '@svc/plugin-kit'
import { headersOf, type ParamHeader } from './param-headers.ts'
import { hashOf } from './pin.ts'
import type { McpToolSchema } from './tool-schema.ts'

/** A tool as its server describes it, without hidden characters. */
export interface ListedTool extends McpToolSchema {
  /** SHA-256 of this description. */
  readonly hash: string
  /** The characters that were removed, by place: `description U+200B × 3`. */
  readonly stripped: readonly string[]
  /** Arguments that a stateless HTTP request repeats in its headers. */
  readonly paramHeaders: readonly ParamHeader[]
}

export interface ToolBounds {
  readonly schemaDepth: number
  readonly toolBytes: number
}

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
  } satisfies McpToolSchema
  const headers = headersOf(schema.inputSchema)
  return { ...schema, hash: hashOf(schema), stripped, paramHeaders: typeof headers === 'string' ? [] : headers }
}

const WORDS = new Set(['title', 'description', '$comment'])

/** Removes hidden characters from the strings and keys of a value. */
function cleaned(value: Json | undefined, place: string, note: (place: string, stripped: Stripped) => string): Json | undefined {
  if (typeof value === 'string')
    return note(place, WORDS.has(place.slice(place.lastIndexOf('.') + 1)) ? stripWords(value) : stripData(value))
  if (Array.isArray(value)) return value.map((one, at) => cleaned(one, `${place}[${at}]`, note) ?? null)
  if (!isObject(value)) return value
  const entries = Object.entries(value).map(([key, one]) => {
    const clean = note(place, stripData(key))
    return [clean, cleaned(one, `${place}.${clean}`, note)] as const
  })
  return Object.fromEntries(entries)
}

/** Whether a value is nested more than `most` levels deep. Recursion stops at that depth. */
export function deeper(value: unknown, most: number): boolean {
  if (!isNested(value)) return false
  if (most < 0) return true
  for (const one of Object.values(value)) if (deeper(one, most - 1)) return true
  return false
}

const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null
const isObject = (value: unknown): value is JsonRecord => isNested(value) && !Array.isArray(value)
