import type { ConfigTree, RunningHost } from '@svc/core'

/** What svc gives a command that a plugin contributes. The base class of `@svc/cli/command` has it all as members. */
export interface CommandContext {
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal
  /** The svc home. */
  readonly home: string
  /** The folder in which svc was started. A command in a process of its own runs in another one. */
  readonly cwd: string
  /** Writes a line to the standard output. */
  readonly print: (line: string) => void
  /** Writes a line for a person to the standard error: what a script that reads the output must not find there. */
  readonly note: (line: string) => void
  /** What the configuration has under these keys, unchecked and without running any plugin: for what must work where the host cannot start. */
  readonly setting: (...keys: readonly string[]) => Promise<unknown>
  /** The configured host, started in this process at the first call without what would listen; closed after the command. The options of the first call count. */
  readonly host: (options?: CommandHostOptions) => Promise<RunningHost>
  /**
   * A client of the server that was chosen, or that runs from this home; undefined where the command is to use its own host. Throws SERVER_AMBIGUOUS where several
   * run, and URL_INVALID.
   */
  readonly server: (choice?: ServerChoice) => Promise<ServerClient | undefined>
  /** Installed plugins that make instances of a section of the configuration, `providers`, and have no entry there. */
  readonly unconfigured: (section: string) => Promise<readonly UnconfiguredPlugin[]>
}

/** An installed plugin that waits for an entry of the configuration. */
export interface UnconfiguredPlugin {
  readonly plugin: string
  /** The type that an entry names. */
  readonly type: string
  /** What to write. */
  readonly hint: string
}

/** How the host of a command is started. */
export interface CommandHostOptions {
  /** Configuration that weighs more than files and environment, as the flags of `svc serve` do. */
  readonly settings?: ConfigTree
  /** Writes the log of the host, at level debug, to the standard error. Without it a person sees only what isolated plugins were refused. */
  readonly debug?: boolean
}

/** Which server a command asks. `SERVER_FLAGS` of `@svc/cli/command` are read into this form. */
export interface ServerChoice {
  /** Its address. */
  readonly url?: string | undefined
  /** Its port on this machine. */
  readonly port?: number | undefined
  /** Use no server. */
  readonly local?: boolean | undefined
  /** A configuration file that was named: it is for the command's own host, so no server is used. */
  readonly config?: string | undefined
}

/** A client of the HTTP API of a server. It sends the credential in SVC_API_KEY, and follows no redirect. */
export interface ServerClient {
  readonly url: string
  /** Resolves with the JSON that the server answers. Throws its error record as an error, and SERVER_UNREACHABLE. */
  request<T>(method: RequestMethod, path: string, options?: RequestOptions): Promise<T>
  /** The events of the event stream that the server answers. Throws as `request` does before the first. */
  stream(method: RequestMethod, path: string, options?: RequestOptions): AsyncIterable<StreamEvent>
}

export type RequestMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface RequestOptions {
  /** Sent as JSON. */
  readonly body?: object
  /** Without it the signal of the command ends the request. */
  readonly signal?: AbortSignal
}

/** One event of an event stream. `event` is `message` where the server named none. */
export interface StreamEvent {
  readonly event: string
  readonly data: string
}
