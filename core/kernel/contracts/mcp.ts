import type { Readable, Writable } from 'node:stream'
import { type CallContext, defineService, defineSlot, defineTopic, type Series } from '@svc/core'
import type { Json } from './store.ts'
import type { Effect, McpToolUi, ToolDialog, ToolStep } from './tool.ts'

/**
 * State of the connection to an MCP server. `degraded`: connected, but partly unusable (a changed tool, a catalogue that
 * exceeds a limit). `needs_auth`: a person has to log in. `quarantined`: it failed too often in a row or broke the protocol;
 * only a person can enable it again.
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

/** Class of a failure, as callers of tools see it. */
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
  /** For people, without credentials and paths of this machine. */
  readonly message: string
}

/** Status of one server. Times are Unix milliseconds. */
export interface McpServerInfo {
  readonly name: string
  /** Its URL without credentials, or its command line. */
  readonly url?: string
  readonly command?: readonly string[]
  readonly state: McpState
  readonly since: number
  readonly lastError?: McpFailure
  /** Attempts to connect since the last connection. */
  readonly attempts: number
  readonly nextRetryAt?: number
  readonly protocolVersion?: string
  /** Names of usable tools on the server. If it is unreachable, those last seen. Empty when it is disabled or quarantined. */
  readonly tools: readonly string[]
  /** Names of changed tools, which are unusable until a person approves them. Absent when there are none. */
  readonly changed?: readonly string[]
  /** Effects of its tools, as configured by the operator. Default: `execute` and `network`. */
  readonly effects: readonly Effect[]
  /** Time limit of a call in milliseconds, whatever progress it reports. */
  readonly callLimitMs: number
  /** The last lines of its standard error, for a local program. */
  readonly stderr?: string
  /** Where it runs: on another machine, or here in the process sandbox or with all rights of svc. */
  readonly runs?: 'remote' | 'sandbox' | 'all rights'
  /** Whether its tools use files or processes of this machine (`Tool.workplace`). */
  readonly workplace?: boolean
  /** Whether `remove` can remove it: it is not in the configuration. */
  readonly removable?: boolean
}

/** A tool as its server describes it, without hidden characters, and whether it is usable. */
export interface McpTool {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly inputSchema: { readonly [key: string]: Json | undefined }
  readonly outputSchema?: { readonly [key: string]: Json | undefined }
  readonly annotations?: { readonly [key: string]: Json | undefined }
  /** Absent: it has no app, and models and apps can call it. */
  readonly ui?: McpToolUi
  /**
   * `changed`: differs from the approved or first seen version and cannot be called until a person approves it. `hidden`:
   * excluded by the configuration.
   */
  readonly status: 'good' | 'changed' | 'hidden'
  /** The differences of a changed tool, one per line (`description: "…" → "…"`). */
  readonly difference?: readonly string[]
  /** A changed tool as it was approved or first seen. */
  readonly approved?: Pick<McpTool, 'title' | 'description' | 'inputSchema' | 'outputSchema' | 'annotations' | 'ui'>
  /** Removed hidden characters by place and code point (`description U+200B × 3`). */
  readonly stripped?: readonly string[]
  /** A digest of this description, to approve what was shown. */
  readonly version?: string
}

/** The page of an MCP App, as its server sent it: not trusted. */
export interface McpApp {
  readonly uri: string
  readonly html: string
}

/** The tools of a server for a person who decides about them. */
export interface McpInspection {
  readonly tools: readonly McpTool[]
  /** What was left out and why, a line each. */
  readonly problems: readonly string[]
  /** Why the server could not be asked now: the tools are those that it listed last. */
  readonly failure?: McpFailure
}

/** One step of a connection test: its result, and its time in milliseconds. */
export interface McpTestStep {
  readonly step: 'resolve' | 'connect' | 'tls' | 'start' | 'auth' | 'handshake' | 'list' | 'call'
  readonly ms: number
  readonly found?: string
  readonly error?: McpFailure
}

/** A new server: the keys of an entry of `mcp.clients`. */
export interface McpServerEntry {
  readonly name: string
  readonly url?: string
  readonly [key: string]: Json | undefined
}

/** A change of the list of servers. */
export interface McpServersChange {
  readonly name: string
  /** Whether a running server has loaded the change. Otherwise it counts after the next reload. */
  readonly applied: boolean
  /** Why a running server could not load it. */
  readonly problems: readonly { readonly code: string; readonly message: string }[]
}

/** A step of a login: the page to open in a browser, and then the end. */
export type McpLoginStep =
  | { readonly type: 'page'; readonly id: string; readonly url: string; readonly redirect: string }
  | { readonly type: 'done' }

export interface McpCallOptions {
  /** Milliseconds. Default: that of the server. */
  readonly timeoutMs?: number
  /** The input requests that the caller supports, and its answers. */
  readonly dialog?: ToolDialog
}

export interface McpClientsHooks {
  /** The tools or the status of a server changed. Called in every worker. */
  changed: Series<{ readonly server: string }>
}

/**
 * The MCP servers that this service is connected to, for every worker. One worker owns a connection; the others use it through
 * that worker. Errors: MCP_SERVER_UNKNOWN, MCP_CALL_FAILED (`details: {server, class, message, retryable, delivered}`).
 */
export interface McpClients {
  list(ctx: CallContext): Promise<readonly McpServerInfo[]>
  /**
   * All tools of a server, unusable ones included. Connects if necessary. Returns the tools last seen when the server is
   * unreachable.
   */
  tools(server: string, ctx: CallContext): Promise<readonly McpTool[]>
  /**
   * Calls a tool. Yields its progress, and ends with one `result` (`isError` when the tool reports a failure) or `input`.
   * Throws MCP_CALL_FAILED otherwise. It repeats a call only if the first certainly did not reach the server.
   */
  call(
    server: string,
    tool: string,
    args: { readonly [name: string]: Json | undefined },
    options: McpCallOptions,
    ctx: CallContext
  ): AsyncIterable<ToolStep>
  /**
   * Reads the app of a usable tool from the server. Throws MCP_CALL_FAILED, also if the tool has no app, or the resource is not
   * a page of MCP Apps.
   */
  app(server: string, tool: string, ctx: CallContext): Promise<McpApp>
  /** Approves the current version of the given tools, or of all. */
  approve(server: string, tools: readonly string[] | undefined, ctx: CallContext): Promise<void>
  /** Enables or disables a server permanently. Enabling also ends a quarantine. */
  setEnabled(server: string, enabled: boolean, ctx: CallContext): Promise<void>
  /** The tools, with what was left out. `fresh` asks the server now; otherwise it is asked only if it never was. */
  inspect(server: string, fresh: boolean, ctx: CallContext): Promise<McpInspection>
  /**
   * Approves these versions of tools. Throws MCP_TOOL_UNKNOWN, and PRECONDITION_FAILED if a tool has another version now: then
   * none is approved.
   */
  approveVersions(
    server: string,
    tools: readonly { readonly name: string; readonly version: string }[],
    ctx: CallContext
  ): Promise<void>
  /** Tests the connection step by step over a connection of its own; ends with the first failed step. */
  test(
    server: string,
    call: { readonly tool: string; readonly args: { readonly [name: string]: Json | undefined } } | undefined,
    ctx: CallContext
  ): AsyncIterable<McpTestStep>
  /**
   * Adds a server to mcp.yaml and reloads the running servers. Throws INVALID_VALUE (`details: {field, reason}`), and FORBIDDEN
   * for a local program or a foreign environment variable, unless `mcp.allow_stdio_over_http` is true.
   */
  add(entry: McpServerEntry, ctx: CallContext): Promise<McpServersChange>
  /** Removes a server from mcp.yaml, with its approvals and its login. Throws INVALID_VALUE if the configuration contains it. */
  remove(server: string, ctx: CallContext): Promise<McpServersChange>
  /** Logs a person in: yields the page to open, and `done` when the tokens are stored. Ends when its reader leaves. */
  login(server: string, port: number | undefined, ctx: CallContext): AsyncIterable<McpLoginStep>
  /**
   * Passes the address to which the browser was sent back, if that browser runs on another machine. Throws LOGIN_UNKNOWN, also for
   * a login of another principal.
   */
  answerLogin(id: string, address: string, ctx: CallContext): Promise<void>
}
export const McpClients = defineService<McpClients, McpClientsHooks>('mcp_clients', {
  api: 1,
  methods: {
    list: 'call',
    tools: 'call',
    call: 'stream',
    app: 'call',
    approve: 'call',
    setEnabled: 'call',
    inspect: 'call',
    approveVersions: 'call',
    test: 'stream',
    add: 'call',
    remove: 'call',
    login: 'stream',
    answerLogin: 'call',
  },
  hooks: { changed: 'series' },
})

/** Fields of all MCP events. They never contain arguments or results. */
interface McpEvent {
  readonly source: 'mcp'
  /** `<server>__<tool>` for a tool of a connected server, the own name for a tool that this service serves. */
  readonly tool_name: string | null
  /** Seconds. */
  readonly duration: number
  readonly server: string
  readonly timestamp: number
}
/**
 * `direction`: `outbound` when this service calls a tool of another server, `inbound` when a client calls a tool of this
 * service. For inbound calls, `server` is the tool set.
 */
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
  /** Without credentials. Absent for a local program. */
  readonly url?: string
  readonly protocol_version?: string
  readonly reason?: string
}

/** A call started; its duration is 0. */
export const McpToolCalled = defineTopic<McpToolEvent>('TOOL', 'mcp_tool_called')
export const McpToolCompleted = defineTopic<McpToolEvent>('TOOL', 'mcp_tool_completed')
/** A call failed, or the tool reported a failure (`tool_error`). Each call ends with either this event or the completed event. */
export const McpToolError = defineTopic<McpToolErrorEvent>('TOOL', 'mcp_tool_error')
/** A connection was established; `duration` is how long that took. */
export const McpServerConnected = defineTopic<McpServerEvent>('TOOL', 'mcp_server_connected')
/** A connection was lost or closed; `duration` is how long it lasted. */
export const McpServerDisconnected = defineTopic<McpServerEvent>('TOOL', 'mcp_server_disconnected')

/**
 * A protocol over two byte streams, such as standard input and output, in process only. It ends with the input or when the
 * signal aborts.
 */
export interface Pipe {
  serve(input: Readable, output: Writable, ctx: CallContext): Promise<void>
}
/** Pipes by the name of their protocol. */
export const Pipes = defineSlot<Pipe>('pipes', { api: 1, methods: { serve: 'call' }, local: true })
