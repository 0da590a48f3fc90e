import { type CallContext, defineService, defineSlot, type JsonSchema } from '@svc/core'
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

/** What came of a tool call. */
export interface ToolResult {
  readonly content: readonly ContentPart[]
  /** The same as data, where the tool has a result schema. */
  readonly structured?: Json
  /** True when the tool says that it failed: the model is told, the caller too. */
  readonly isError?: boolean
  /** What the tool has to say to its caller's program beside the answer (`_meta` of the tool protocol); no model sees it. */
  readonly meta?: { readonly [key: string]: Json | undefined }
}

/**
 * Something that a tool asks of its caller before it can go on, in the words of the tool protocol (MCP): an answer of the person (`elicitation/create`), of the
 * caller's model (`sampling/createMessage`), or its folders (`roots/list`).
 */
export interface InputRequest {
  readonly method: 'elicitation/create' | 'sampling/createMessage' | 'roots/list'
  readonly params?: { readonly [name: string]: Json | undefined }
}

/** What a caller can be asked for, and what it answered when it was asked. */
export interface ToolDialog {
  /** What it can be asked for. */
  readonly can: readonly InputRequest['method'][]
  /** Its answers, by the keys of the requests; the results of the protocol's methods, unchecked. Absent at the first call. */
  readonly answers?: { readonly [key: string]: Json | undefined }
  /** What the tool gave with its requests, back word for word. The caller may have changed it: a tool that trusts it has signed it, and throws INPUT_STATE_INVALID for another's. */
  readonly state?: string
}

/** What a tool tells while it works. `input` and `result` are its last word. */
export type ToolStep =
  | { readonly type: 'progress'; readonly progress: number; readonly total?: number; readonly message?: string }
  | {
      readonly type: 'log'
      readonly level: 'debug' | 'info' | 'notice' | 'warning' | 'error' | 'critical' | 'alert' | 'emergency'
      readonly data: Json
      readonly logger?: string
    }
  /** It cannot go on without this: the caller may call it again, with the same arguments, the answers and the state. */
  | { readonly type: 'input'; readonly requests: { readonly [key: string]: InputRequest }; readonly state?: string }
  | { readonly type: 'result'; readonly result: ToolResult }

/**
 * Something a model or a caller may have done. All members but `call` are data. `call` throws for what went wrong: the message reaches the model, and so does
 * the `hint` of an error of svc, so they are written for it.
 */
export interface Tool {
  /** Its name for people; default: the name. */
  readonly title?: string
  readonly description: string
  /** One of `files search web code shell git text time mcp`, or one of the plugin's own. */
  readonly category: string
  readonly effects: readonly Effect[]
  /** Modes in which alone a turn has it, where they allow its effects; absent: all that do. Nobody outside a turn has it then. */
  readonly modes?: readonly string[]
  /** JSON Schema of the arguments: an object schema. The caller has checked them. */
  readonly parameters: JsonSchema
  /** JSON Schema of `structured`. */
  readonly result?: JsonSchema
  /** Milliseconds it may take; default `chat.tool_timeout_ms`. */
  readonly timeoutMs?: number
  /** True when a person is to be asked before each call: where nobody can be asked, the call is denied. */
  readonly asks?: boolean
  call(args: { readonly [name: string]: Json | undefined }, ctx: CallContext): Promise<ToolResult>
  /** The same step by step, for callers that can take progress and be asked. Who has it does in `call` what goes without them. */
  run?(args: { readonly [name: string]: Json | undefined }, dialog: ToolDialog, ctx: CallContext): AsyncIterable<ToolStep>
}

/** Tools by the name a model calls them by. */
export const Tools = defineSlot<Tool>('tools', { api: 1, methods: { call: 'call', run: 'stream' } })

/**
 * Paths that one owner protects: configuration, definitions, code that svc imports. File tools, git tools, sandboxed commands and sandboxed tool servers
 * can read them where their own rules allow it, and can neither write, replace, rename, link nor delete them, nor anything in them. All data.
 */
export interface ProtectedPaths {
  /** Absolute paths of files and folders. One that does not exist yet cannot be created. */
  readonly paths: readonly string[]
  /** What they are, as the end of the sentence "it belongs to …": `the configuration of svc`. */
  readonly owner: string
  /** What the operator can do about it, where there is something, in the imperative: `set workflows.writable_by_tools to true`. */
  readonly hint?: string
}

/** Protected paths by the name of what they belong to: `configuration`, `workflows`. */
export const ProtectedPaths = defineSlot<ProtectedPaths>('protected_paths', { api: 1, methods: {} })

/** Knows the folders that tools work in. Who has no folders of its own in its configuration asks here. */
export interface Workplace {
  /** Folders of this machine, absolute. */
  roots(ctx: CallContext): Promise<readonly string[]>
}

export const Workplace = defineService<Workplace>('workplace', { api: 1, methods: { roots: 'call' } })
