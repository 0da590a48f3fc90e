import { createHash } from 'node:crypto'
import type { McpTool } from '@svc/core/contracts'
import { differenceOf, type ListedTool, pinnedOf } from './listed-tool.ts'
import { toolMatcher } from './tool-schema.ts'

/** The tools as they were approved or first seen, by name. */
export type Pins = { readonly [name: string]: ListedTool }

/** The rules of an operator for the tools of a server: names, and patterns. */
export interface ToolRules {
  readonly tools?: readonly string[]
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
}

/** Limit on the pins of a server: ever new names would fill the store. Old pins stay, so that a server cannot change a tool unseen. */
const MAX_PINS = 3_000
/** Limit on the JSON characters of all pins without the last one: the store reads and writes them as one record. */
const MAX_CHARACTERS = 16_777_216
const NOT_PINNED = 'it is new, and the limit on the pinned tools of this server is reached'

/** All tools of a server, with their status: whether they can be used. */
export const assessTools = (tools: readonly ListedTool[], pins: Pins, rules: ToolRules): McpTool[] =>
  tools.map(tool => assess(tool, pins, rules))

function assess(tool: ListedTool, pins: Pins, rules: ToolRules): McpTool {
  const pinned = pinOf(pins, tool.name)
  const { hash, stripped, paramHeaders: _headers, ...words } = tool
  const plain = { ...words, version: hash, ...(stripped.length > 0 ? { stripped } : {}) } as Omit<McpTool, 'status'>
  if (!isWanted(tool.name, rules)) return { ...plain, status: 'hidden' }
  if (pinned === undefined && isFull(sizeOf(pins))) return { ...plain, status: 'changed', difference: [NOT_PINNED] }
  if (pinned === undefined || pinned.hash === hash) return { ...plain, status: 'good' }
  const { name: _name, ...approved } = pinnedOf(pinned)
  return {
    ...plain,
    status: 'changed',
    difference: differenceOf(pinned, tool),
    approved: approved as NonNullable<McpTool['approved']>,
  }
}

const pinOf = (pins: Pins, name: string) => (Object.hasOwn(pins, name) ? pins[name] : undefined)

/** Whether the rules allow this tool. */
export function isWanted(name: string, { tools, allow, deny }: ToolRules): boolean {
  if (deny !== undefined && toolMatcher(deny)(name)) return false
  if (tools !== undefined && !tools.includes(name)) return false
  return allow === undefined || toolMatcher(allow)(name)
}

/** Pins all new tools. Returns the same pins if there are none. */
export function withNewPins(pins: Pins, tools: readonly ListedTool[]): Pins {
  let size = sizeOf(pins)
  const fresh = tools.filter(tool => {
    if (pinOf(pins, tool.name) !== undefined || isFull(size)) return false
    size = { count: size.count + 1, characters: size.characters + JSON.stringify(tool).length }
    return true
  })
  return fresh.length === 0 ? pins : pinTools(pins, fresh)
}

interface PinsSize {
  readonly count: number
  readonly characters: number
}

const sizes = new WeakMap<Pins, PinsSize>()

function sizeOf(pins: Pins): PinsSize {
  const known = sizes.get(pins)
  if (known) return known
  const all = Object.values(pins)
  const size = { count: all.length, characters: all.reduce((sum, tool) => sum + JSON.stringify(tool).length, 0) }
  sizes.set(pins, size)
  return size
}

const isFull = ({ count, characters }: PinsSize): boolean => count >= MAX_PINS || characters > MAX_CHARACTERS

/** Pins these tools as they are now. */
export const pinTools = (pins: Pins, tools: readonly ListedTool[]): Pins =>
  Object.fromEntries([...Object.entries(pins), ...tools.map(tool => [tool.name, tool] as const)])

/** Returns the SHA-256, in hex, of a list of tools and of its problems. */
export const listHash = (tools: readonly ListedTool[], problems: readonly string[]): string =>
  createHash('sha256')
    .update(JSON.stringify([tools.map(({ hash, stripped }) => [hash, stripped]), problems]))
    .digest('hex')
