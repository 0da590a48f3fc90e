import { defineService, type Series, type Use } from '@svc/core'
import type { Json } from './store.ts'
import type { ToolDialog, ToolStep } from './tool.ts'

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
  /** The names of the tools that may be used, as the server has them. */
  readonly tools: readonly string[]
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
  list(use: Use): Promise<readonly McpServerInfo[]>
  /** All tools of a server, those that may not be used too. Connects it where that is needed. */
  tools(server: string, use: Use): Promise<readonly McpTool[]>
  /**
   * Calls a tool. Yields what the server tells, and ends with one `result` (`isError` in it where the tool says that it failed) or `input`; throws
   * MCP_CALL_FAILED otherwise. Never sent twice, unless it surely did not reach the server.
   */
  call(
    server: string,
    tool: string,
    args: { readonly [name: string]: Json | undefined },
    options: McpCallOptions,
    use: Use
  ): AsyncIterable<ToolStep>
  /** What the server offers now is what was meant: pins it, all tools or these. */
  approve(server: string, tools: readonly string[] | undefined, use: Use): Promise<void>
  /** Off lasts until it is switched on again; on also ends a quarantine. */
  setEnabled(server: string, enabled: boolean, use: Use): Promise<void>
}
export const McpClients = defineService<McpClients, McpClientsHooks>('mcp_clients', {
  api: 1,
  methods: { list: 'call', tools: 'call', call: 'stream', approve: 'call', setEnabled: 'call' },
  hooks: { changed: 'series' },
})
