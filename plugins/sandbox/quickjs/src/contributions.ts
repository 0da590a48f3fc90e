import type { RuntimeItem, RuntimeModule } from '@svc/core'
import { type Effect, type Tool, type ToolResult, Tools } from '@svc/core/contracts'
import { exportsInvalid, itemInvalid, slotUnknown } from './errors.ts'

/** What a module exports, as the engine tells it: nothing of it can be trusted. */
interface Exported {
  readonly slot: string
  readonly name: string
  readonly data: Readonly<Record<string, unknown>>
  readonly methods: readonly unknown[]
}

/** The slots that plugins in the sandbox may add to: their items cross as JSON. */
const SLOTS = { tools: Tools } as const

/** Reads what a module exports. Throws RUNTIME_SLOT, RUNTIME_ITEM, RUNTIME_EXPORTS. */
export function contributionsOf({ plugin, permissions }: RuntimeModule, exported: unknown): readonly RuntimeItem[] {
  if (!Array.isArray(exported) || !exported.every(isExported)) throw exportsInvalid(plugin)
  return exported.map(({ slot, name, data, methods }) => {
    if (!Object.hasOwn(SLOTS, slot)) throw slotUnknown(plugin, slot, Object.keys(SLOTS))
    const fault = faultOf(data, methods)
    if (fault !== undefined) throw itemInvalid(plugin, `${slot}.${name}`, fault)
    const tool = { category: plugin, ...pick(data), effects: effectsOf(data, permissions) }
    return { slot: SLOTS[slot as keyof typeof SLOTS], name, data: tool, methods: ['call'] }
  })
}

const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown) => typeof value === 'string'

/** The engine runs code of the module while it tells this. */
function isExported(one: unknown): one is Exported {
  const { slot, name, data, methods } = Object(one) as Record<string, unknown>
  return isText(slot) && isText(name) && isObject(data) && Array.isArray(methods)
}

const EFFECTS: readonly unknown[] = ['read', 'write', 'execute', 'network'] satisfies Tool['effects']

/** The parts of a tool that are data: how each must be, in words. All but three may be missing. */
const PARTS_OF_TOOL: Readonly<Record<string, readonly [is: (value: unknown) => boolean, fault: string]>> = {
  description: [isText, 'which has no "description"'],
  effects: [all => Array.isArray(all) && all.every(one => EFFECTS.includes(one)), 'whose "effects" are no list of effects'],
  parameters: [isObject, 'whose "parameters" are no JSON Schema'],
  result: [isObject, 'whose "result" is no JSON Schema'],
  title: [isText, 'whose "title" is no text'],
  category: [isText, 'whose "category" is no text'],
  asks: [value => typeof value === 'boolean', 'whose "asks" is neither true nor false'],
  timeoutMs: [value => Number.isInteger(value) && Number(value) > 0, 'whose "timeoutMs" is no whole number above 0'],
}
const NEEDED = ['description', 'effects', 'parameters']

/** What is wrong with a tool, in words. */
function faultOf(data: Exported['data'], methods: readonly unknown[]): string | undefined {
  if (!methods.includes('call')) return 'which has no function "call"'
  const wrong = Object.entries(PARTS_OF_TOOL).find(
    ([name, [is]]) => (NEEDED.includes(name) || data[name] !== undefined) && !is(data[name])
  )
  return wrong?.[1][1]
}

/** What else a module gives is no part of a tool. */
const pick = (data: Exported['data']) =>
  Object.fromEntries(Object.entries(data).filter(([name]) => Object.hasOwn(PARTS_OF_TOOL, name)))

/** Code that may fetch has that effect, whatever it says: modes allow and deny by it. */
function effectsOf({ effects }: Exported['data'], { network = [] }: RuntimeModule['permissions']): readonly Effect[] {
  return [...new Set([...(effects as Effect[]), ...(network.length > 0 ? (['network'] as const) : [])])]
}

/** A tool's answer: what is none yet becomes one, with the same as data. */
export function resultOf(value: unknown): ToolResult {
  if (isResult(value)) return value
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return {
    content: [{ type: 'text', text }],
    ...(typeof value === 'string' ? {} : { structured: value as ToolResult['structured'] & {} }),
  }
}

/** What the known parts of an answer must have as text. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  image: ['data', 'mimeType'],
  audio: ['data', 'mimeType'],
  resource_link: ['uri', 'name'],
}

function isPart(part: unknown): boolean {
  const members = Object(part) as Record<string, unknown>
  return (
    Object.hasOwn(PARTS, String(members.type)) && PARTS[String(members.type)]!.every(name => typeof members[name] === 'string')
  )
}

const isResult = (value: unknown): value is ToolResult => {
  const { content, isError } = Object(value) as Record<string, unknown>
  return Array.isArray(content) && content.every(isPart) && (isError === undefined || typeof isError === 'boolean')
}
