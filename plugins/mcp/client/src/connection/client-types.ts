import type { InputRequest, Json, McpApp, McpFailure, McpServerInfo, ToolResult, ToolStep } from '@svc/core/contracts'
import type { McpLimits, StepOptions, ToolList, ToolSchema } from '@svc/mcp-protocol'
import type { ServerFetchOptions } from '@svc/mcp-protocol/server-fetch'

export type { McpLimits, StepOptions } from '@svc/mcp-protocol'
export type { Fetch, OAuthOptions, Person, TokenStorage } from '@svc/mcp-protocol/oauth'

/**
 * The wait before the next attempt: `exponential` = min(30 s, 0.5 s · 2ⁿ) with full jitter; `linear` adds 1 s each time, up to 30 s; `constant` 1 s; or a function
 * that returns the milliseconds after so many failures in a row.
 */
export type Backoff = 'exponential' | 'linear' | 'constant' | ((failures: number) => number)

/** Seconds of a call. */
export const TIMEOUT_S = 30
/** Progress extends a call up to this multiple of its time. */
export const PROGRESS_FACTOR = 10

/**
 * The era of the protocol that a server speaks, and when the client learned it (Unix milliseconds). Plain data; pass it to the next client to shorten the handshake.
 * Ignored when older than a day.
 */
export interface KnownEra {
  readonly era: 'legacy' | 'modern'
  readonly since: number
}

interface CommonOptions {
  /** The name in messages; default: the address, or the command. */
  readonly name?: string
  /** The names of the tools to use; `[]`: none; default: all. */
  readonly tools?: readonly string[]
  /** Seconds of a call; default 30. */
  readonly timeout?: number
  /** Seconds up to which progress extends a call; default ten times `timeout`. */
  readonly maxTimeout?: number
  /** Further attempts after a failed one, before the connection is `failed`; 0 makes none; default 5. */
  readonly retryAttempts?: number
  /** Default `exponential`. */
  readonly backoff?: Backoff
  /** Milliseconds for a connection, the handshake and the list of tools; default 30,000. */
  readonly connectMs?: number
  /** The questions of a server before protocol 2026, declared in the handshake; default `elicitation/create`. */
  readonly can?: readonly InputRequest['method'][]
  /** Milliseconds without a call after which the connection is closed until the next one; 0 keeps it; default 0. */
  readonly idleMs?: number
  /** Failures in a row after which the server is `quarantined`; default 20. */
  readonly quarantineAfter?: number
  readonly known?: KnownEra
  readonly limits?: Partial<McpLimits>
}

/** A remote server. */
export interface HttpOptions extends CommonOptions, ServerFetchOptions {
  readonly command?: undefined
}

/** A program to start, with all of its variables. */
export interface Launch {
  readonly file: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string
  /** True if all of its child processes end with it (a process namespace). */
  readonly contained?: boolean
  /** Called after it has ended; can return a better reason for the end. */
  readonly release?: () => Promise<string | undefined>
}

/** A local program. */
export interface StdioOptions extends CommonOptions {
  readonly command: string
  readonly args?: readonly string[]
  /** Variables besides PATH, HOME, LANG, TERM, TMPDIR, USER, LOGNAME, SHELL and TZ of this process: it inherits no other. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Replaces each launch, for example with one in a sandbox. */
  readonly wrap?: (launch: Launch, ctx: { readonly signal: AbortSignal }) => Promise<Launch>
  readonly url?: undefined
}

export type McpClientOptions = HttpOptions | StdioOptions

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
  /** Reads the page of an MCP App. Throws as `connect`. */
  readApp(uri: string, ctx?: AbortOptions): Promise<McpApp>
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
