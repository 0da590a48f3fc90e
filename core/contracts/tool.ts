import { defineSlot, type JsonSchema, type Use } from '@svc/core'
import type { Json } from './store.ts'

/** What a tool does to the world: modes allow and deny by it. */
export type Effect = 'read' | 'write' | 'execute' | 'network'

/** A piece of a tool's answer, in the form of MCP content blocks; other block types pass through. */
export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'audio'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'resource_link'; readonly uri: string; readonly name: string; readonly mimeType?: string }
  | { readonly type: 'resource'; readonly resource: { readonly [key: string]: Json | undefined } }

export interface ToolResult {
  readonly content: readonly ContentPart[]
  /** The same as data, where the tool has a result schema. */
  readonly structured?: Json
  /** True when the tool says that it failed: the model is told, the caller too. */
  readonly isError?: boolean
}

/**
 * Something a model or a caller may have done. All members but `call` are data. `call` throws for what went wrong: the message reaches the model, and so does
 * the `mend` of an error of svc, so they are written for it.
 */
export interface Tool {
  readonly description: string
  /** One of `files search web code shell git text time mcp`, or one of the plugin's own. */
  readonly category: string
  readonly effects: readonly Effect[]
  /** JSON Schema of the arguments: an object schema. The caller has checked them. */
  readonly parameters: JsonSchema
  /** JSON Schema of `structured`. */
  readonly result?: JsonSchema
  /** Milliseconds it may take; default `chat.tool_timeout_ms`. */
  readonly timeoutMs?: number
  /** True when a person is to be asked before each call: where nobody can be asked, the call is denied. */
  readonly asks?: boolean
  call(args: { readonly [name: string]: Json | undefined }, use: Use): Promise<ToolResult>
}

/** Tools by the name a model calls them by. */
export const Tools = defineSlot<Tool>('tools', { api: 1, methods: { call: 'call' } })
