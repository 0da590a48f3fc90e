import type { Json, McpCallOptions, McpFailure, McpServerInfo, ToolResult, ToolStep } from '@svc/core/contracts'
import type { ListedTool, ToolSchema } from '@svc/mcp'
import type { KnownEra } from './options.ts'
import type { Backoff } from './timing.ts'

/** How a connection stands. Times are Unix milliseconds. */
export interface McpStatus
  extends Pick<McpServerInfo, 'state' | 'since' | 'lastError' | 'attempts' | 'nextRetryAt' | 'protocolVersion' | 'stderr'> {
  /** As it names itself: words of a stranger. */
  readonly server?: { readonly name: string; readonly version: string }
  /** What it wants models to know. */
  readonly instructions?: string
  /** Worth keeping for the next client of this server. */
  readonly known?: KnownEra
}

/** What happens to a connection, as it happens. */
export type McpChange =
  | { readonly type: 'state'; readonly status: McpStatus }
  | { readonly type: 'connected'; readonly protocolVersion: string }
  | { readonly type: 'disconnected'; readonly reason: string }
  /** The server says that its tools are others now; `listTools` asks it anew. */
  | { readonly type: 'tools' }

/** The document's answer of a call: when `error` is set it failed, otherwise `content` holds the output. */
export interface CallAnswer {
  readonly content: ToolResult['content']
  /** The same as data, where the tool has an output schema. */
  readonly structured?: Json
  readonly error: McpFailure | null
}

export type Arguments = { readonly [name: string]: Json | undefined }
export interface Waiting {
  readonly signal?: AbortSignal
}

/** The trace that a call belongs to: W3C `traceparent` and `tracestate`. */
export interface Traced {
  readonly trace?: string
  readonly traceState?: string
}

/** The circumstances of a call: its end, and the trace that its server is told (`_meta`, and headers over HTTP). Nothing else of a `Use` leaves this process. */
export interface CallUse extends Traced {
  readonly signal: AbortSignal
}

export interface StepOptions extends McpCallOptions {
  /** Whose call it is: who answers what a server asks must be the same. */
  readonly owner?: string
}

/** A connection to one server. It connects when it is first needed, and again when it was lost. */
export interface McpClient extends AsyncDisposable {
  readonly name: string
  status(): McpStatus
  /** Connects; resolved at once where it is connected. Throws MCP_CALL_FAILED (`details: {server, class, message, retryable, delivered}`). */
  connect(use?: Waiting): Promise<void>
  /** All its tools, as it describes them but for hidden characters, asked for anew. Those that break a limit are left out, and said in `faults`. Throws as `connect`. */
  listTools(use?: Waiting): Promise<ToolList>
  /** One tool in this service's own form. Throws as `connect`, class `tool_not_found` too. */
  getToolSchema(name: string, use?: Waiting): Promise<ToolSchema>
  /** Calls a tool; `timeout` in seconds wins over the client's own, 0 is invalid. Never throws but for wrong options. */
  callTool(name: string, args: Arguments, options?: { readonly timeout?: number } & Waiting): Promise<CallAnswer>
  /** The same step by step: what it tells, then one `result` or `input`. Throws MCP_CALL_FAILED. */
  call(name: string, args: Arguments, options: StepOptions, use: CallUse): AsyncIterable<ToolStep>
  /** Told each time a connection is lost; answers what ends it. */
  onDisconnect(callback: (reason: string) => void): () => void
  onChange(callback: (change: McpChange) => void): () => void
  /** Throws CONFIG_INVALID. */
  setReconnectPolicy(maxAttempts: number, backoff: Backoff): void
  /** Off: disconnects, and stays so. On also ends a quarantine. */
  setEnabled(enabled: boolean): Promise<void>
  /** Breaks a promise of the server (a changed tool): `degraded` until it is fixed (`undefined`). */
  setDegraded(reason: McpFailure | undefined): void
  /** Disconnects; a call connects again. For a server that is no longer needed here. */
  disconnect(reason: string): Promise<void>
  /** Ends it for good: calls fail, its process and all that it started is gone. */
  close(): Promise<void>
}

export interface ToolList {
  readonly tools: readonly ListedTool[]
  /** What was left out, and why: a line each. */
  readonly faults: readonly string[]
}
