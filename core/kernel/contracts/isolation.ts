import { defineService, type Manifest, type CallContext } from '@svc/core'

/** A plugin to run in its own process. */
export interface IsolationRequest {
  readonly plugin: string
  /** The configuration entry of the instance, for a plugin with instances. */
  readonly instance?: string
  /** The folder of its package. */
  readonly folder: string
  /** The accepted permissions, or those of its manifest. Entries like `<tools.notes.folder>` refer to values of `config`. */
  readonly permissions: NonNullable<Manifest['permissions']>
  /** Its section of the configuration, if already known. */
  readonly config?: { readonly section: string; readonly value: unknown }
  /** The arguments of Node: flags, entry module, arguments of the entry. */
  readonly args: readonly string[]
  /** Folders with the host code of the entry. */
  readonly hostFolders: readonly string[]
}

/** One instance of a plugin. */
export type IsolatedName = Pick<IsolationRequest, 'plugin' | 'instance'>

/** A plugin to quarantine. */
export interface QuarantinedName extends IsolatedName {
  /** Since when it is out, in Unix milliseconds. Default: now. A release that came later holds. */
  readonly at?: number
}

/**
 * What confines an isolated plugin: the process sandbox, Node's permission model alone, or nothing (a plugin of the program
 * itself).
 */
export type IsolationHold = 'sandbox' | 'permissions' | 'nothing'

/** A process to start with exactly these variables. */
export interface PreparedProcess {
  readonly id: string
  readonly file: string
  readonly args: readonly string[]
  readonly env: { readonly [name: string]: string }
  readonly hold: IsolationHold
  /** Milliseconds without a response after which the process counts as blocked. */
  readonly hangMs: number
  /** Number of deaths within `windowMs` after which the process is not restarted. */
  readonly restarts: number
  readonly windowMs: number
}

/** The kind of a denied access: variable, host, read path, write path, program, hook. */
export type RefusalKind = 'env' | 'network' | 'read' | 'write' | 'process' | 'hooks' | 'spaces'

/** Resource usage of one process of an isolated plugin. */
export interface IsolationUsage {
  /** Processor time of this process and its children in milliseconds; 0 when unknown. */
  readonly cpuMs: number
  /** Its memory in bytes; 0 when unknown. */
  readonly memoryBytes: number
  /** Number of denied accesses of the plugin since the start of the host, by kind. */
  readonly refusals: { readonly [kind in RefusalKind]?: number }
}

/** Enforces the permissions of isolated plugins. */
export interface Isolation {
  /**
   * Prepares one process of a plugin and returns its command line. It starts nothing, but creates the sandbox: call `release`
   * when the process has exited or was not started. Throws ISOLATION_UNAVAILABLE when this machine cannot confine it and the
   * configuration requires that, and ISOLATION_PATH for a path that must not be exposed.
   */
  prepare(request: IsolationRequest, ctx: CallContext): Promise<PreparedProcess>
  /** Kills remaining processes, removes the sandbox, and returns descriptions of the limits that were reached. */
  release(id: string, ctx: CallContext): Promise<readonly string[]>
  /** Records a denied access: logs it with the name of the plugin and counts it. Unknown ids are ignored. */
  refused(id: string, what: { readonly kind: RefusalKind; readonly what: string }, ctx: CallContext): Promise<void>
  /** Returns the resource usage of a process. `pid` is the process that was started with the command line. */
  look(id: string, pid: number, ctx: CallContext): Promise<IsolationUsage>
  /**
   * Puts this version of a plugin into quarantine because it died too often: no worker of the cluster restarts it until an operator
   * reloads a server. Resolves when all workers know.
   */
  quarantine(who: QuarantinedName, ctx: CallContext): Promise<void>
  /**
   * Yields `true` when a worker has quarantined this version of the plugin, and `false` when it is released. Ends when the signal of
   * the context aborts.
   */
  quarantined(who: IsolatedName, ctx: CallContext): AsyncIterable<boolean>
}

/** The policy for isolated plugins. */
export const Isolation = defineService<Isolation>('isolation', {
  api: 1,
  methods: { prepare: 'call', release: 'call', refused: 'call', look: 'call', quarantine: 'call', quarantined: 'stream' },
})
