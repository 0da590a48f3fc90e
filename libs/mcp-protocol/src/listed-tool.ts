import type { Json } from '@svc/core/contracts'
import { stripData, stripWords, type Stripped } from '@svc/plugin-kit'
import { headersOf, type ParamHeader } from './param-headers.ts'
import { hashOf } from './pin.ts'
import type { McpToolSchema } from './tool-schema.ts'

/** A tool as its server describes it, but for hidden characters. */
export interface ListedTool extends McpToolSchema {
  /** SHA-256 of it as it stands here. */
  readonly hash: string
  /** What was taken out, by place: `description U+200B × 3`. */
  readonly stripped: readonly string[]
  /** Arguments that a stateless HTTP request repeats in its headers. */
  readonly paramHeaders: readonly ParamHeader[]
}

export interface ToolBounds {
  readonly schemaDepth: number
  readonly toolBytes: number
}

type Fact = { readonly [key: string]: Json | undefined }
const NAME_LENGTH = 128

/** Reads a tool that a server lists; text where it is none, or breaks a bound. */
export function readTool(raw: unknown, bounds: ToolBounds): ListedTool | string {
  if (!isObject(raw) || typeof raw['name'] !== 'string' || raw['name'] === '') return 'a tool without a name'
  const name = stripWords(raw['name'])
  const called = `tool ${JSON.stringify(name.text.slice(0, NAME_LENGTH))}`
  if (raw['name'].length > NAME_LENGTH) return `${called}: its name is longer than ${NAME_LENGTH} characters`
  if (name.found.length > 0) return `${called}: its name has hidden characters (${name.found.join(', ')})`
  const fault = faultOf(raw, bounds)
  return fault === undefined ? listed(raw['name'], raw) : `${called}: ${fault}`
}

function faultOf(raw: Fact, { schemaDepth, toolBytes }: ToolBounds): string | undefined {
  if (!isObject(raw['inputSchema'])) return 'it has no input schema'
  for (const key of ['outputSchema', 'annotations'])
    if (raw[key] !== undefined && !isObject(raw[key])) return `its ${key} is no object`
  for (const key of ['title', 'description'])
    if (raw[key] !== undefined && typeof raw[key] !== 'string') return `its ${key} is no text`
  // before anything that calls itself for what lies within
  if (deeper(raw, schemaDepth)) return `its schemas are deeper than ${schemaDepth} levels`
  if (JSON.stringify(raw).length > toolBytes) return `it is larger than ${toolBytes} bytes`
  const headers = headersOf(raw['inputSchema'])
  return typeof headers === 'string' ? headers : undefined
}

function listed(name: string, raw: Fact): ListedTool {
  const stripped: string[] = []
  const tell = (place: string, { text, found }: Stripped) => {
    if (found.length > 0) stripped.push(`${place} ${found.join(', ')}`)
    return text
  }
  const schema = {
    name,
    ...(raw['title'] !== undefined && { title: tell('title', stripWords(raw['title'] as string)) }),
    description: tell('description', stripWords((raw['description'] as string | undefined) ?? '')),
    inputSchema: cleaned(raw['inputSchema'], 'inputSchema', tell) as Fact,
    ...(raw['outputSchema'] !== undefined && { outputSchema: cleaned(raw['outputSchema'], 'outputSchema', tell) as Fact }),
    ...(raw['annotations'] !== undefined && { annotations: cleaned(raw['annotations'], 'annotations', tell) as Fact }),
  } satisfies McpToolSchema
  const headers = headersOf(schema.inputSchema)
  return { ...schema, hash: hashOf(schema), stripped, paramHeaders: typeof headers === 'string' ? [] : headers }
}

const WORDS = new Set(['title', 'description', '$comment'])

/** The same value; strings of it without hidden characters, keys too. */
function cleaned(value: Json | undefined, place: string, tell: (place: string, stripped: Stripped) => string): Json | undefined {
  if (typeof value === 'string')
    return tell(place, WORDS.has(place.slice(place.lastIndexOf('.') + 1)) ? stripWords(value) : stripData(value))
  if (Array.isArray(value)) return value.map((one, at) => cleaned(one, `${place}[${at}]`, tell) ?? null)
  if (!isObject(value)) return value
  const entries = Object.entries(value).map(([key, one]) => {
    const clean = tell(place, stripData(key))
    return [clean, cleaned(one, `${place}.${clean}`, tell)] as const
  })
  return Object.fromEntries(entries)
}

/** Whether a value has more levels than this; takes no more stack than so many levels do. */
export function deeper(value: unknown, most: number): boolean {
  if (!isNested(value)) return false
  if (most < 0) return true
  for (const one of Object.values(value)) if (deeper(one, most - 1)) return true
  return false
}

const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null
const isObject = (value: unknown): value is Fact => isNested(value) && !Array.isArray(value)
