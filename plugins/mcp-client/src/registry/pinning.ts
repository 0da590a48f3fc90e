import type { McpTool } from '@svc/core/contracts'
import { differenceOf, type ListedTool } from '@svc/mcp'
import type { McpClientConfig } from './settings.ts'

/** The tools that were approved or seen first, by name. */
export type Pins = { readonly [name: string]: ListedTool }

/** A server that has ever new names would fill the store; to forget old ones would let it change them unseen. */
const MOST_PINS = 3_000
/** Characters of all of them as JSON, the last one aside: they are read and written as one. */
const MOST_CHARACTERS = 16_777_216
const ONE_MORE = 'it is new, and this server has had too many others to note it down'

/** The tools of a server, and which of them may be used. */
export const standings = (tools: readonly ListedTool[], pins: Pins, entry: McpClientConfig): McpTool[] =>
  tools.map(tool => standing(tool, pins, entry))

function standing(tool: ListedTool, pins: Pins, entry: McpClientConfig): McpTool {
  const pinned = own(pins, tool.name)
  const { hash, stripped, paramHeaders: _headers, ...words } = tool
  const plain = { ...words, ...(stripped.length > 0 ? { stripped } : {}) } as Omit<McpTool, 'standing'>
  if (!isWanted(tool.name, entry)) return { ...plain, standing: 'hidden' }
  if (pinned === undefined && isFull(pins)) return { ...plain, standing: 'changed', difference: [ONE_MORE] }
  if (pinned === undefined || pinned.hash === hash) return { ...plain, standing: 'good' }
  return { ...plain, standing: 'changed', difference: differenceOf(pinned, tool) }
}

const own = (pins: Pins, name: string) => (Object.hasOwn(pins, name) ? pins[name] : undefined)

/** Whether the configuration leaves this tool in. */
export function isWanted(name: string, { tools, allow, deny }: McpClientConfig): boolean {
  if (deny?.some(pattern => fits(pattern, name))) return false
  if (tools !== undefined && !tools.includes(name)) return false
  return allow === undefined || allow.some(pattern => fits(pattern, name))
}

/** `*` stands for anything. Each piece is looked for once, from left to right: no pattern takes long. */
function fits(pattern: string, name: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return pattern === name
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false
  let at = first.length
  for (const piece of rest) {
    const found = name.indexOf(piece, at)
    if (found < 0 || found + piece.length > name.length - last.length) return false
    at = found + piece.length
  }
  return true
}

/** The pins with all tools that nobody has seen before; the same pins where there is none. */
export function withFirstSights(pins: Pins, tools: readonly ListedTool[]): Pins {
  let { count, characters } = sizeOf(pins)
  const fresh = tools.filter(tool => {
    if (own(pins, tool.name) !== undefined || count >= MOST_PINS || characters > MOST_CHARACTERS) return false
    count++
    characters += JSON.stringify(tool).length
    return true
  })
  return fresh.length === 0 ? pins : approved(pins, fresh)
}

const sizes = new WeakMap<Pins, { readonly count: number; readonly characters: number }>()

function sizeOf(pins: Pins) {
  const known = sizes.get(pins)
  if (known) return known
  const all = Object.values(pins)
  const size = { count: all.length, characters: all.reduce((sum, tool) => sum + JSON.stringify(tool).length, 0) }
  sizes.set(pins, size)
  return size
}

function isFull(pins: Pins): boolean {
  const { count, characters } = sizeOf(pins)
  return count >= MOST_PINS || characters > MOST_CHARACTERS
}

/** The pins with these tools as they are now. */
export const approved = (pins: Pins, tools: readonly ListedTool[]): Pins =>
  Object.fromEntries([...Object.entries(pins), ...tools.map(tool => [tool.name, tool] as const)])
