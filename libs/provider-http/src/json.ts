import type { ToolSpec } from '@svc/core/contracts'

/** An object as JSON has it. */
export type Tree = { readonly [key: string]: unknown }

export const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)
/** The member as an object; an empty one where it is none. */
export const treeIn = (value: unknown, key: string): Tree => {
  const member = isTree(value) ? value[key] : undefined
  return isTree(member) ? member : {}
}
export const textIn = (value: unknown, key: string): string | undefined => {
  const member = isTree(value) ? value[key] : undefined
  return typeof member === 'string' ? member : undefined
}
/** A whole number of at least `least`. */
export const countIn = (value: unknown, key: string, least = 0): number | undefined => {
  const member = isTree(value) ? value[key] : undefined
  return Number.isSafeInteger(member) && Number(member) >= least ? Number(member) : undefined
}

/** Keeps what is made of a list of tools for as long as the list is there: it is the same for all turns of a mode. */
export function perTools<T>(make: (tools: readonly ToolSpec[]) => T): (tools: readonly ToolSpec[]) => T {
  const made = new WeakMap<readonly ToolSpec[], T>()
  return tools => {
    const there = made.get(tools)
    if (there !== undefined) return there
    const value = make(tools)
    made.set(tools, value)
    return value
  }
}

const written = new WeakMap<readonly unknown[], Buffer>()

/** A body as it is sent: JSON. A list under `tools` is most of it, and is written once for all requests that carry the same one. */
export function sentBody(body: unknown): string | Uint8Array {
  if (!isTree(body) || !Array.isArray(body.tools)) return JSON.stringify(body)
  const text = JSON.stringify({ ...body, tools: undefined })
  return joined(text === '{}' ? '{' : `${text.slice(0, -1)},`, bytesOf(body.tools))
}

function bytesOf(tools: readonly unknown[]): Buffer {
  const bytes = written.get(tools) ?? Buffer.from(`"tools":${JSON.stringify(tools)}}`)
  written.set(tools, bytes)
  return bytes
}

function joined(text: string, rest: Buffer): Buffer {
  const length = Buffer.byteLength(text)
  const all = Buffer.allocUnsafe(length + rest.length)
  all.write(text)
  rest.copy(all, length)
  return all
}
