import { defineService, type Manifest, type CallContext } from '@svc/core'

/** A plugin that is to run in a process of its own. */
export interface IsolationRequest {
  readonly plugin: string
  /** The entry of the configuration that it is set up for, where it has several. */
  readonly instance?: string
  /** The folder of its package. */
  readonly folder: string
  /** What it may have: what its manifest says, or what a person has accepted of it. Entries like `<tools.notes.folder>` are values of `config`. */
  readonly permissions: NonNullable<Manifest['permissions']>
  /** The part of the configuration that is its own, where that is known yet. */
  readonly config?: { readonly section: string; readonly value: unknown }
  /** What Node is given: its flags, the entry, and the entry's arguments. */
  readonly args: readonly string[]
  /** Folders of the host's own code that the entry is made of. */
  readonly hostFolders: readonly string[]
}

/** One set-up of a plugin. */
export type IsolatedName = Pick<IsolationRequest, 'plugin' | 'instance'>

/** By what an isolated plugin is held: the process sandbox, Node's permission model alone, or nothing (a program's own plugin). */
export type IsolationHold = 'sandbox' | 'permissions' | 'nothing'

/** A process as it is to be started, with these variables and no others. */
export interface PreparedProcess {
  readonly id: string
  readonly file: string
  readonly args: readonly string[]
  readonly env: { readonly [name: string]: string }
  readonly hold: IsolationHold
  /** Milliseconds without an answer after which it counts as hanging. */
  readonly hangMs: number
  /** How often it may die within `windowMs` until it is brought up no more. */
  readonly restarts: number
  readonly windowMs: number
}

/** What kind of thing a plugin reached for: a variable, a host, a path to read or to write, another program, a hook. */
export type RefusalKind = 'env' | 'network' | 'read' | 'write' | 'process' | 'hooks'

/** How one process of an isolated plugin stands. */
export interface IsolationUsage {
  /** Processor time of this process and all that it started, in milliseconds; 0 where the machine does not tell. */
  readonly cpuMs: number
  /** Its memory in bytes; 0 where the machine does not tell. */
  readonly memoryBytes: number
  /** What the plugin was refused since the host began, by kind. */
  readonly refusals: { readonly [kind in RefusalKind]?: number }
}

/** Holds isolated plugins to what they may have. */
export interface Isolation {
  /**
   * The command line for one process of a plugin. Starts nothing, but makes what holds it: call `release` when it has ended, or was never started. Throws
   * ISOLATION_UNAVAILABLE where this machine cannot hold it and the configuration does not say to go without, ISOLATION_PATH for a path that may not be shown.
   */
  prepare(request: IsolationRequest, ctx: CallContext): Promise<PreparedProcess>
  /** Ends what still runs, removes what was made, and tells which limits it ran into, in words; none: an empty list. */
  release(id: string, ctx: CallContext): Promise<readonly string[]>
  /** The plugin reached for what it does not declare and did not get it: logged by name, counted. An unknown id is none. */
  refused(id: string, what: { readonly kind: RefusalKind; readonly what: string }, ctx: CallContext): Promise<void>
  /** How a process stands; `pid` is of the process that was started with the command line. */
  look(id: string, pid: number, ctx: CallContext): Promise<IsolationUsage>
  /** It has died too often here: no worker of this server brings it up any more, until the server is reloaded. Answers when all of them know. */
  quarantine(who: IsolatedName, ctx: CallContext): Promise<void>
  /** Yields once, when a worker has said that; ends with the signal of `use`. */
  quarantined(who: IsolatedName, ctx: CallContext): AsyncIterable<true>
}

/** The policy of isolated plugins. */
export const Isolation = defineService<Isolation>('isolation', {
  api: 1,
  methods: { prepare: 'call', release: 'call', refused: 'call', look: 'call', quarantine: 'call', quarantined: 'stream' },
})
