import { type CallContext, defineService, defineSlot, type JsonSchema } from '@svc/core'
import type { Json } from './store.ts'

/** The effect of a tool on its environment. Modes allow tools by their effects. */
export type Effect = 'read' | 'write' | 'execute' | 'network'

/** A part of a tool result, as an MCP content block. Other block types pass through. */
export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'audio'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'resource_link'; readonly uri: string; readonly name: string; readonly mimeType?: string }
  | { readonly type: 'resource'; readonly resource: { readonly [key: string]: Json | undefined } }

/** The result of a tool call. */
export interface ToolResult {
  readonly content: readonly ContentPart[]
  /** The result as data, for a tool with a result schema. */
  readonly structured?: Json
  /** True when the tool reports a failure, which the model and the caller see. */
  readonly isError?: boolean
  /** Data for the program of the caller (`_meta` of MCP). Models do not see it. */
  readonly meta?: { readonly [key: string]: Json | undefined }
}

/**
 * Input that a tool requests from its caller, as in MCP: an answer of the user (`elicitation/create`), a reply of the caller's
 * model (`sampling/createMessage`), or its folders (`roots/list`).
 */
export interface InputRequest {
  readonly method: 'elicitation/create' | 'sampling/createMessage' | 'roots/list'
  readonly params?: { readonly [name: string]: Json | undefined }
}

/** The input requests that a caller supports, and its answers. */
export interface ToolDialog {
  /** Supported request methods. */
  readonly can: readonly InputRequest['method'][]
  /** The answers by the keys of the requests: results of the protocol's methods, unchecked. Absent in the first call. */
  readonly answers?: { readonly [key: string]: Json | undefined }
  /**
   * The state that the tool returned with its requests. The caller can have changed it: a tool that relies on it must sign it,
   * and throw INPUT_STATE_INVALID for an invalid signature.
   */
  readonly state?: string
}

/** Events of a running tool. `input` and `result` are final. */
export type ToolStep =
  | { readonly type: 'progress'; readonly progress: number; readonly total?: number; readonly message?: string }
  | {
      readonly type: 'log'
      readonly level: 'debug' | 'info' | 'notice' | 'warning' | 'error' | 'critical' | 'alert' | 'emergency'
      readonly data: Json
      readonly logger?: string
    }
  /** Requests input. The caller can repeat the call with the same arguments, the answers and the state. */
  | { readonly type: 'input'; readonly requests: { readonly [key: string]: InputRequest }; readonly state?: string }
  | { readonly type: 'result'; readonly result: ToolResult }

/**
 * A tool for models and callers. All members but the methods are data. `call` throws on failure. The message and the `hint` of
 * the error reach the model, so write them for it.
 */
export interface Tool {
  /** Its display name. Default: the name. */
  readonly title?: string
  readonly description: string
  /** One of `files search web code shell git text time mcp`, or a category of the plugin. */
  readonly category: string
  readonly effects: readonly Effect[]
  /**
   * Modes in which turns can use it, if they allow its effects. Absent: all that do. With this list, the tool is available only
   * in turns.
   */
  readonly modes?: readonly string[]
  /** JSON Schema of the arguments, an object. The caller validates them. */
  readonly parameters: JsonSchema
  /** JSON Schema of `structured`. */
  readonly result?: JsonSchema
  /** Time limit in milliseconds. Default: `chat.tool_timeout_ms`. */
  readonly timeoutMs?: number
  /** The tool of an MCP server that this tool calls. */
  readonly mcp?: ToolOrigin
  /**
   * True: it uses files or processes of this machine that other machines do not have, such as working folders. In a cluster, a
   * workflow run that calls it then continues only on this node.
   */
  readonly workplace?: boolean
  /** True: a person must approve each call. Without one, the call is denied. */
  readonly asks?: boolean
  call(args: { readonly [name: string]: Json | undefined }, ctx: CallContext): Promise<ToolResult>
  /** The same as a stream, for callers that handle progress and input requests. `call` then works without both. */
  run?(args: { readonly [name: string]: Json | undefined }, dialog: ToolDialog, ctx: CallContext): AsyncIterable<ToolStep>
}

/** The MCP App of a tool (`_meta.ui`, protocol 2026-01-26). */
export interface McpToolUi {
  /** The resource that shows its results: `ui://…`. */
  readonly resourceUri?: string
  /** Who can call the tool: models, and the apps of its own server. */
  readonly visibility: readonly ('model' | 'app')[]
}

/** A tool of an MCP server, and who can call it. */
export interface ToolOrigin extends McpToolUi {
  readonly server: string
  /** Its name on the server. */
  readonly tool: string
}

/** Tools by the name under which a model calls them. */
export const Tools = defineSlot<Tool>('tools', {
  api: 1,
  methods: { call: 'call', run: 'stream' },
  traced: {
    span: 'execute_tool',
    attribute: 'gen_ai.tool.name',
    attributes: { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.type': 'function' },
    methods: ['call', 'run'],
    failed: 'isError',
    content: { argument: 'gen_ai.tool.call.arguments', answer: 'gen_ai.tool.call.result' },
  },
})

/**
 * Paths that an owner protects: configuration, definitions, code that svc imports. File tools, git tools, sandboxed commands
 * and sandboxed tool servers can read them if their own rules allow it. They cannot write, replace, rename, link or delete them
 * or their content. Data only.
 */
export interface ProtectedPaths {
  /** Absolute paths of files and folders. A missing path cannot be created. */
  readonly paths: readonly string[]
  /** The owner, as the end of the sentence "it belongs to …": `the configuration of svc`. */
  readonly owner: string
  /** What the operator can do, in the imperative: `set workflows.writable_by_tools to true`. */
  readonly hint?: string
}

/** Protected paths by owner: `configuration`, `workflows`. */
export const ProtectedPaths = defineSlot<ProtectedPaths>('protected_paths', { api: 1, methods: {} })

/** Provides the working folders of tools. Plugins without configured folders use these. */
export interface Workplace {
  /** Absolute paths of folders on this machine. */
  roots(ctx: CallContext): Promise<readonly string[]>
}

export const Workplace = defineService<Workplace>('workplace', { api: 1, methods: { roots: 'call' } })
