import type { ConfigTree, RunningHost } from '@svc/core'

/** The context of a command that a plugin contributes. The base class of `@svc/cli/command` has it as members. */
export interface CommandContext {
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal
  /** The svc home. */
  readonly home: string
  /** The folder in which svc was started. A command in its own process runs in another one. */
  readonly cwd: string
  /** Writes a line to standard output. */
  readonly print: (line: string) => void
  /** Writes a line for people to standard error, so that scripts that read the output do not get it. */
  readonly note: (line: string) => void
  /** Returns the raw configuration under these keys. It runs no plugin, so it works when the host cannot start. */
  readonly setting: (...keys: readonly string[]) => Promise<unknown>
  /**
   * The configured host. The first call starts it in this process, without listeners, with the given options. It is closed
   * after the command.
   */
  readonly host: (options?: CommandHostOptions) => Promise<RunningHost>
  /**
   * A client of the chosen server, or of the server that runs from this home. Resolves to undefined when the command should use
   * its own host. Throws SERVER_AMBIGUOUS when several servers run, and URL_INVALID.
   */
  readonly server: (choice?: ServerChoice) => Promise<ServerClient | undefined>
  /** Installed plugins that provide instances of a section such as `providers` and have no entry there. */
  readonly unconfigured: (section: string) => Promise<readonly UnconfiguredPlugin[]>
  /** The configured plugins that have accepted permissions of this kind, with what these list. It runs no plugin. */
  readonly granted: (permission: 'secrets') => Promise<readonly GrantedPermission[]>
}

/** A permission of a plugin that a person has accepted. */
export interface GrantedPermission {
  readonly plugin: string
  readonly names: readonly string[]
}

/** An installed plugin without an entry in the configuration. */
export interface UnconfiguredPlugin {
  readonly plugin: string
  /** The `type` of an entry. */
  readonly type: string
  /** The configuration to write. */
  readonly hint: string
}

/** Options of the host of a command. */
export interface CommandHostOptions {
  /** Configuration with higher priority than files and environment, like the flags of `svc serve`. */
  readonly settings?: ConfigTree
  /**
   * Writes the log of the host to standard error at level debug. Without it, only denied accesses of isolated plugins are
   * shown.
   */
  readonly debug?: boolean
  /** Writes the log of the host to standard error, at the configured level. */
  readonly log?: boolean
  /** Sections whose plugins start although they are of kind `surface`, which the host of a command leaves out. */
  readonly surfaces?: readonly string[]
  /** Starts only the plugins that provide these services, and those that they need. Default: all. */
  readonly only?: readonly string[]
}

/** Selects the server. `SERVER_FLAGS` of `@svc/cli/command` are parsed into this form. */
export interface ServerChoice {
  /** Its address. */
  readonly url?: string | undefined
  /** Its port on this machine. */
  readonly port?: number | undefined
  /** Headers to send, as `Name: value`, or `@file` with one header a line. */
  readonly header?: readonly string[] | undefined
  /** Use no server. */
  readonly local?: boolean | undefined
  /**
   * Without `url` and `header`: sends the requests over the control socket of the server of this home, as the operator of the
   * machine, without a credential. Commands of isolated plugins cannot.
   */
  readonly operator?: boolean | undefined
  /** A named configuration file. It applies to the command's own host, so no server is used. */
  readonly config?: string | undefined
}

/**
 * A client of the HTTP API of a server. It sends the credential in SVC_API_KEY or of SVC_CREDENTIAL_HELPER, and the headers of
 * --header. It follows no redirects.
 */
export interface ServerClient {
  readonly url: string
  /** Resolves to the JSON response, or to undefined for a response without content. Throws the error record of the server as an error, and SERVER_UNREACHABLE. */
  request<T>(method: RequestMethod, path: string, options?: RequestOptions): Promise<T>
  /** Streams the events of an event stream. Throws like `request` before the first event. */
  stream(method: RequestMethod, path: string, options?: RequestOptions): AsyncIterable<StreamEvent>
  /** Yields the text of a response piece by piece, such as a download. Throws like `request` before the first piece. */
  text(method: RequestMethod, path: string, options?: RequestOptions): AsyncIterable<string>
}

export type RequestMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface RequestOptions {
  /** Sent as JSON. */
  readonly body?: object
  /** Default: the signal of the command. */
  readonly signal?: AbortSignal
}

/** One event of an event stream. `event` is `message` when the server sent no name. */
export interface StreamEvent {
  readonly event: string
  readonly data: string
}
