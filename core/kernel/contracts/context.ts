import { defineSlot, type CallContext } from '@svc/core'
import type { ContentPart, InputRequest, ToolDialog } from './tool.ts'

/** The content of a resource: text, or bytes in base64. */
export type ResourceContent =
  | { readonly uri: string; readonly mimeType?: string; readonly text: string }
  | { readonly uri: string; readonly mimeType?: string; readonly blob: string }

/** What may be put in the place of an argument, best first; at most 100 are told. */
export interface Completions {
  readonly values: readonly string[]
  /** How many there are in all. */
  readonly total?: number
}

/**
 * Something that can be read by its address: one (`uri`), or many of one kind (`uriTemplate`, RFC 6570). It has one of the two. `read` throws for an address that
 * leads nowhere: code RESOURCE_UNKNOWN.
 */
export interface Resource {
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
  readonly uri?: string
  readonly uriTemplate?: string
  /** Bytes, where they are known. */
  readonly size?: number
  read(uri: string, ctx: CallContext): Promise<readonly ResourceContent[]>
  /** What may stand for a variable of `uriTemplate`; `known` are the variables that are settled. */
  complete?(variable: string, begun: string, known: { readonly [name: string]: string }, ctx: CallContext): Promise<Completions>
  /** Yields an address of this resource each time what is there has changed, until the signal. */
  changes?(ctx: CallContext): AsyncIterable<string>
}
/** Resources by name, for those who read what others publish: tool protocol clients first of all. */
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
/** The messages, or what must be known before. */
export type PromptAnswer =
  | { readonly messages: readonly PromptMessage[]; readonly description?: string }
  | { readonly requests: { readonly [key: string]: InputRequest }; readonly state?: string }

/** Messages that somebody wrote for a purpose, with blanks to fill. */
export interface Prompt {
  readonly title?: string
  readonly description?: string
  readonly arguments?: readonly PromptArgument[]
  get(args: { readonly [name: string]: string }, dialog: ToolDialog, ctx: CallContext): Promise<PromptAnswer>
  complete?(argument: string, begun: string, known: { readonly [name: string]: string }, ctx: CallContext): Promise<Completions>
}
/** Prompts by name. */
export const Prompts = defineSlot<Prompt>('prompts', { api: 1, methods: { get: 'call', complete: 'call' } })
