import { defineSlot, type CallContext } from '@svc/core'
import type { ContentPart, InputRequest, ToolDialog } from './tool.ts'

/** The content of a resource: text, or bytes in base64. */
export type ResourceContent =
  | { readonly uri: string; readonly mimeType?: string; readonly text: string }
  | { readonly uri: string; readonly mimeType?: string; readonly blob: string }

/** Completions of an argument, best first, at most 100. */
export interface Completions {
  readonly values: readonly string[]
  /** The total number of completions. */
  readonly total?: number
}

/**
 * A resource that is read by its URI: a single one (`uri`) or a template for many (`uriTemplate`, RFC 6570), never both. `read`
 * throws RESOURCE_UNKNOWN for an unknown URI.
 */
export interface Resource {
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
  readonly uri?: string
  readonly uriTemplate?: string
  /** The size in bytes, if known. */
  readonly size?: number
  read(uri: string, ctx: CallContext): Promise<readonly ResourceContent[]>
  /** Completes a variable of `uriTemplate`. `known` has the values of other variables. */
  complete?(variable: string, begun: string, known: { readonly [name: string]: string }, ctx: CallContext): Promise<Completions>
  /** Yields a URI of this resource each time its content has changed, until the signal aborts. */
  changes?(ctx: CallContext): AsyncIterable<string>
}
/** Resources by name, mainly for MCP clients. */
export const Resources = defineSlot<Resource>('resources', {
  api: 1,
  methods: { read: 'call', complete: 'call', changes: 'stream' },
})

export interface PromptArgument {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly required?: boolean
}
export interface PromptMessage {
  readonly role: 'user' | 'assistant'
  readonly content: ContentPart
}
/** The messages, or requests for input that is needed first. */
export type PromptAnswer =
  | { readonly messages: readonly PromptMessage[]; readonly description?: string }
  | { readonly requests: { readonly [key: string]: InputRequest }; readonly state?: string }

/** A message template with arguments. */
export interface Prompt {
  readonly title?: string
  readonly description?: string
  readonly arguments?: readonly PromptArgument[]
  get(args: { readonly [name: string]: string }, dialog: ToolDialog, ctx: CallContext): Promise<PromptAnswer>
  complete?(argument: string, begun: string, known: { readonly [name: string]: string }, ctx: CallContext): Promise<Completions>
}
/** Prompts by name. */
export const Prompts = defineSlot<Prompt>('prompts', { api: 1, methods: { get: 'call', complete: 'call' } })
