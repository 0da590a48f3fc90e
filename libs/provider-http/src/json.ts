import type { ToolSpec } from '@svc/core/contracts'

/** A JSON object. */
export type Tree = { readonly [key: string]: unknown }

export const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)
/** The member, if it is an object; else an empty object. */
export const treeIn = (value: unknown, key: string): Tree => {
  const member = isTree(value) ? value[key] : undefined
  return isTree(member) ? member : {}
}
export const textIn = (value: unknown, key: string): string | undefined => {
  const member = isTree(value) ? value[key] : undefined
  return typeof member === 'string' ? member : undefined
}
/** The member, if it is an integer of at least `least`. */
export const countIn = (value: unknown, key: string, least = 0): number | undefined => {
  const member = isTree(value) ? value[key] : undefined
  return Number.isSafeInteger(member) && Number(member) >= least ? Number(member) : undefined
}

/** Caches the result of `make` for each list of tools. All turns of a mode share the same list. */
export function perTools<T>(make: (tools: readonly ToolSpec[]) => T): (tools: readonly ToolSpec[]) => T {
  const made = new WeakMap<readonly ToolSpec[], T>()
  return tools => {
    const cached = made.get(tools)
    if (cached !== undefined) return cached
    const value = make(tools)
    made.set(tools, value)
    return value
  }
}

const written = new WeakMap<readonly unknown[], Buffer>()

/** Serializes a body as JSON. `tools` is most of it: requests with the same list share its bytes. */
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
