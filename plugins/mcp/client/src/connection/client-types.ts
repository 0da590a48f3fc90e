import type { Json, McpFailure, McpServerInfo, ToolResult, ToolStep } from '@svc/core/contracts'
import type { StepOptions, ToolList, ToolSchema } from '@svc/mcp-protocol'
import type { Backoff, KnownEra } from './options.ts'

export type { StepOptions } from '@svc/mcp-protocol'

/** The status of a connection. Times are Unix milliseconds. */
export interface McpStatus
  extends Pick<McpServerInfo, 'state' | 'since' | 'lastError' | 'attempts' | 'nextRetryAt' | 'protocolVersion' | 'stderr'> {
  /** Name and version as the server reports them: not trusted. */
  readonly server?: { readonly name: string; readonly version: string }
  /** The server's instructions for models. */
  readonly instructions?: string
  /** Pass it to the next client of this server. */
  readonly known?: KnownEra
  readonly timings?: ConnectionTimings
}

/** The milliseconds that the parts of the last connection took. */
export interface ConnectionTimings {
  /** The start of a local program. */
  readonly startMs: number
  /** Requests for tokens, and those that the server refused without one. */
  readonly authMs: number
  readonly handshakeMs: number
}

/** An event of a connection. */
export type McpChange =
  | { readonly type: 'state'; readonly status: McpStatus }
  /** `durationMs`: milliseconds of the attempt that has connected. */
  | { readonly type: 'connected'; readonly protocolVersion: string; readonly durationMs: number }
  /** `durationMs`: milliseconds for which the connection was open. */
  | { readonly type: 'disconnected'; readonly reason: string; readonly durationMs: number }
  /** The server reports changed tools; `listTools` reads them again. */
  | { readonly type: 'tools' }

/** The result of a call: when `error` is set it failed, otherwise `content` holds the output. */
export interface CallAnswer {
  readonly content: ToolResult['content']
  /** The structured result, if the tool has an output schema. */
  readonly structured?: Json
  readonly error: McpFailure | null
}

export type Arguments = { readonly [name: string]: Json | undefined }
export interface AbortOptions {
  readonly signal?: AbortSignal
}

/** The context of a call: its signal, and the trace that the server gets (`_meta`, and headers over HTTP). Nothing else of the context leaves this process. */
export interface RunningCallContext {
  readonly signal: AbortSignal
  /** W3C `traceparent` and `tracestate`. */
  readonly trace?: string
  readonly traceState?: string
}

/** A connection to one server. It connects on demand and reconnects after a loss. */
export interface McpClient extends AsyncDisposable {
  readonly name: string
  status(): McpStatus
  /** Connects; resolves at once if it is connected. Throws MCP_CALL_FAILED (`details: {server, class, message, retryable, delivered}`). */
  connect(ctx?: AbortOptions): Promise<void>
  /** Lists all tools again, without hidden characters. Leaves out tools that exceed a limit, and reports them in `problems`. Throws as `connect`. */
  listTools(ctx?: AbortOptions): Promise<ToolList>
  /** One tool in the schema form of svc. Throws as `connect`, and class `tool_not_found`. */
  getToolSchema(name: string, ctx?: AbortOptions): Promise<ToolSchema>
  /** Calls a tool; `timeout` in seconds overrides the client's, 0 is invalid. Throws only for invalid options. */
  callTool(name: string, args: Arguments, options?: { readonly timeout?: number } & AbortOptions): Promise<CallAnswer>
  /** Calls a tool step by step: progress and log steps, then one `result` or `input`. Throws MCP_CALL_FAILED. */
  call(name: string, args: Arguments, options: StepOptions, ctx: RunningCallContext): AsyncIterable<ToolStep>
  /** Calls back when a connection is lost. Returns a function that removes the callback. */
  onDisconnect(callback: (reason: string) => void): () => void
  onChange(callback: (change: McpChange) => void): () => void
  /** Throws CONFIG_INVALID. */
  setReconnectPolicy(retryAttempts: number, backoff: Backoff): void
  /** False disconnects until true; true also ends a quarantine. */
  setEnabled(enabled: boolean): Promise<void>
  /** Marks the connection as `degraded`, for example because a tool changed; `undefined` removes the mark. */
  setDegraded(reason: McpFailure | undefined): void
  /** Disconnects; the next call connects again. */
  disconnect(reason: string): Promise<void>
  /** Closes the client: calls fail, and the process with all of its children has ended when this resolves. */
  close(): Promise<void>
}
