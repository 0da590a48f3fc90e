import type { Readable, Writable } from 'node:stream'
import { type CallContext, defineService, defineSlot, defineTopic, type Series } from '@svc/core'
import type { Json } from './store.ts'
import type { Effect, ToolDialog, ToolStep } from './tool.ts'

/**
 * How the connection to a tool server (MCP) stands. `degraded`: connected, but part of it cannot be used (a changed tool, a catalogue that breaks a limit);
 * `needs_auth`: a person has to log in; `quarantined`: failed too often in a row, or lies; only a person (`enable`) brings it back.
 */
export type McpState =
  | 'disconnected'
  | 'connecting'
  | 'connected'
  | 'degraded'
  | 'reconnecting'
  | 'failed'
  | 'disabled'
  | 'quarantined'
  | 'needs_auth'

/** Why something did not come about, in the words that callers of tools know. */
export type McpErrorClass =
  | 'connection_refused'
  | 'authentication_failed'
  | 'tool_not_found'
  | 'timeout'
  | 'tool_error'
  | 'protocol_error'
  | 'cancelled'

export interface McpFailure {
  readonly class: McpErrorClass
  /** For people; without credentials and paths of this machine. */
  readonly message: string
}

/** One server and how it stands. Times are Unix milliseconds. */
export interface McpServerInfo {
  readonly name: string
  /** Its address without credentials, or the words of its command. */
  readonly url?: string
  readonly command?: readonly string[]
  readonly state: McpState
  readonly since: number
  readonly lastError?: McpFailure
  /** Attempts to connect since it was last connected. */
  readonly attempts: number
  readonly nextRetryAt?: number
  readonly protocolVersion?: string
  /** The names of the tools that may be used, as the server has them: those last seen, where it cannot be reached just now; none of one that is disabled or quarantined. */
  readonly tools: readonly string[]
  /** The names of those that changed: out of use until a person approves them. Absent where there are none. */
  readonly changed?: readonly string[]
  /** What its tools do to the world, as far as the operator says. Default `execute` and `network`. */
  readonly effects: readonly Effect[]
  /** Milliseconds that a call may take, however often it tells of progress. */
  readonly callLimitMs: number
  /** The last lines it wrote to its standard error, where it is a program of this machine. */
  readonly stderr?: string
}

/** A tool as its server describes it, word for word but for hidden characters, and whether it may be used. */
export interface McpTool {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly inputSchema: { readonly [key: string]: Json | undefined }
  readonly outputSchema?: { readonly [key: string]: Json | undefined }
  readonly annotations?: { readonly [key: string]: Json | undefined }
  /** `changed`: not what was approved or first seen; it cannot be called until somebody approves it. `hidden`: the configuration leaves it out. */
  readonly standing: 'good' | 'changed' | 'hidden'
  /** What is new about a changed one, a line each (`description: "…" → "…"`). */
  readonly difference?: readonly string[]
  /** Hidden characters that were taken out of its words: by place and code point (`description U+200B × 3`). */
  readonly stripped?: readonly string[]
}

export interface McpCallOptions {
  /** Milliseconds; default: the server's own. */
  readonly timeoutMs?: number
  /** What the caller can be asked for, and its answers. */
  readonly dialog?: ToolDialog
}

export interface McpClientsHooks {
  /** The tools of a server, or how it stands, have changed; in every worker. */
  changed: Series<{ readonly server: string }>
}

/**
 * The tool servers that this service is connected to. In each worker; one of them owns the connection, the others reach it through that one.
 * Errors: MCP_SERVER_UNKNOWN, MCP_CALL_FAILED (`details: {server, class, message, retryable, delivered}`).
 */
export interface McpClients {
  list(ctx: CallContext): Promise<readonly McpServerInfo[]>
  /** All tools of a server, those that may not be used too: connects it where that is needed, and answers those last seen where it cannot be reached. */
  tools(server: string, ctx: CallContext): Promise<readonly McpTool[]>
  /**
   * Calls a tool. Yields what the server tells, and ends with one `result` (`isError` in it where the tool says that it failed) or `input`; throws
   * MCP_CALL_FAILED otherwise. Never sent twice, unless it surely did not reach the server.
   */
  call(
    server: string,
    tool: string,
    args: { readonly [name: string]: Json | undefined },
    options: McpCallOptions,
    ctx: CallContext
  ): AsyncIterable<ToolStep>
  /** What the server offers now is what was meant: pins it, all tools or these. */
  approve(server: string, tools: readonly string[] | undefined, ctx: CallContext): Promise<void>
  /** Off lasts until it is switched on again; on also ends a quarantine. */
  setEnabled(server: string, enabled: boolean, ctx: CallContext): Promise<void>
}
export const McpClients = defineService<McpClients, McpClientsHooks>('mcp_clients', {
  api: 1,
  methods: { list: 'call', tools: 'call', call: 'stream', approve: 'call', setEnabled: 'call' },
  hooks: { changed: 'series' },
})

/** What all events of the tool protocol carry. Never arguments or results. */
interface McpEvent {
  readonly source: 'mcp'
  /** As this service knows it: `<server>__<tool>` of a connected server, its own name of what this service serves. */
  readonly tool_name: string | null
  /** Seconds. */
  readonly duration: number
  readonly server: string
  readonly timestamp: number
}
/** `direction`: `outbound` where this service calls a tool of another server, `inbound` where a client calls one of this service. `server` is then the set it was called in. */
export interface McpToolEvent extends McpEvent {
  readonly tool_name: string
  readonly call_id: string
  readonly direction: 'inbound' | 'outbound'
}
export interface McpToolErrorEvent extends McpToolEvent {
  readonly error_class: McpErrorClass
  readonly error: string
}
export interface McpServerEvent extends McpEvent {
  readonly tool_name: null
  /** Without credentials; absent of a program of this machine. */
  readonly url?: string
  readonly protocol_version?: string
  readonly reason?: string
}

/** A call began; its duration is 0. */
export const McpToolCalled = defineTopic<McpToolEvent>('TOOL', 'mcp_tool_called')
export const McpToolCompleted = defineTopic<McpToolEvent>('TOOL', 'mcp_tool_completed')
/** A call failed, also where the tool itself says so (`tool_error`). Each call ends with one event: this, or that it completed. */
export const McpToolError = defineTopic<McpToolErrorEvent>('TOOL', 'mcp_tool_error')
/** A connection was made; `duration` is what that took. */
export const McpServerConnected = defineTopic<McpServerEvent>('TOOL', 'mcp_server_connected')
/** A connection was lost or closed; `duration` is how long it had lasted. */
export const McpServerDisconnected = defineTopic<McpServerEvent>('TOOL', 'mcp_server_disconnected')

/** A conversation over two byte streams, in process only: standard input and output. It ends with the input, or with the signal. */
export interface Pipe {
  serve(input: Readable, output: Writable, ctx: CallContext): Promise<void>
}
/** Conversations by the name of what is spoken. */
export const Pipes = defineSlot<Pipe>('pipes', { api: 1, methods: { serve: 'call' }, local: true })
