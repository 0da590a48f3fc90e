import { type CallContext, defineService, type Runtime } from '@svc/core'
import type { Json } from './store.ts'

/** What a process in the sandbox may have. */
export interface ProcessLimits {
  /** Bytes of memory for the process and all that it starts. Refused where this machine can hold no such limit. */
  readonly memoryBytes?: number
  /** How many processes and threads there may be at once; Node alone has a dozen. Refused where this machine can hold no such limit; absent: 256 where it can. */
  readonly pids?: number
  /** False: a network of its own with nothing in it. True: the network of this machine, its loopback included. */
  readonly networkAccess: boolean
  /** False: the folders that are visible for this process alone (`cwd`, `readPaths`) may be written too. The system never can. */
  readonly filesystemReadonly: boolean
  /** Files and folders that may be written; links are followed first. */
  readonly allowedPaths: readonly string[]
  /** Files and folders that may be read besides the system and the program's own. */
  readonly readPaths?: readonly string[]
}

/** A process to be run. */
export interface ProcessRequest {
  /** A name that is looked up in `env.PATH` (else in the host's), or a path. */
  readonly command: string
  readonly args: readonly string[]
  /** Its only variables, but for `PATH`, `HOME` and `TMPDIR`, which have a sensible value where they are absent. */
  readonly env: { readonly [name: string]: string }
  /** A folder that it may read; absent: its private `/tmp`. */
  readonly cwd?: string
  readonly limits: ProcessLimits
  /** Whether it is a Node program, which gets Node's permission model as a second fence; absent: where the command is `node`. */
  readonly node?: boolean
  /**
   * Whether it runs for as long as the server does. Then a writable folder is refused in which a protected path is missing or is a file, because the
   * protection of these does not outlast what a person does with them, and git folders are read-only as a whole.
   */
  readonly lasting?: boolean
}

/** By what a limit is held: a control group (version 2 or 1), a scope of systemd, or the limits of each single process. */
export type LimitHolder = 'cgroup2' | 'cgroup1' | 'systemd' | 'rlimit'

/** What is in force for one process; null: nothing was asked, and nothing is held. */
export interface Enforced {
  readonly memory: LimitHolder | null
  readonly pids: LimitHolder | null
  readonly network: 'none' | 'host'
  /** Whether Node's permission model is on as well. */
  readonly nodePermission: boolean
}

/** A command line that enforces what was asked. Start it with these variables and no others; its end is the end of all that runs in it. */
export interface WrappedProcess {
  readonly file: string
  readonly args: readonly string[]
  readonly env: { readonly [name: string]: string }
  /** For `release`. */
  readonly id: string
  readonly enforced: Enforced
}

/** Which limits a process ran into. */
export interface Released {
  readonly outOfMemory: boolean
  readonly outOfPids: boolean
}

/** What this machine can hold. */
export interface SandboxAbility {
  /** Whether anything can be run at all: bubblewrap is there and may make its namespaces. */
  readonly ready: boolean
  /** Its version. */
  readonly bubblewrap: string | null
  readonly memory: LimitHolder | null
  readonly pids: LimitHolder | null
  /** What is missing, and what fixes it. */
  readonly reason?: string
  readonly hint?: string
}

/** Runs programs of strangers. What this machine cannot hold is refused, never run open. */
export interface ProcessSandbox {
  /**
   * The command line for a process. Starts nothing, but makes what holds its limits: call `release` when it has ended, or was never started. Throws
   * SANDBOX_UNAVAILABLE where this machine cannot hold what is asked, SANDBOX_PATH for a path that may not be shown, SANDBOX_COMMAND for a program that is
   * not there.
   */
  wrap(request: ProcessRequest, ctx: CallContext): Promise<WrappedProcess>
  /** Ends what still runs in it, removes what was made for it, and tells which limits it ran into. An unknown id is none. */
  release(id: string, ctx: CallContext): Promise<Released>
  /** What this machine can hold: known by doing it, once; a machine that cannot is asked again. */
  probe(ctx: CallContext): Promise<SandboxAbility>
}

export const ProcessSandbox = defineService<ProcessSandbox>('process_sandbox', {
  api: 1,
  methods: { wrap: 'call', release: 'call', probe: 'call' },
})

/** What a script may do and take; what is absent is as the sandbox is configured, or not allowed. */
export interface ScriptLimits {
  /** Milliseconds from its beginning to its end, waiting included. */
  readonly timeoutMs?: number
  /** Bytes of memory, the engine's own included. */
  readonly memoryBytes?: number
  /** Hosts that `fetch` may ask; `*` is every public one. Without a host there is no `fetch`. */
  readonly network?: readonly string[]
  /** Folders in which `files` may read and write. Without one there is no `files`. */
  readonly paths?: readonly string[]
}

/** JavaScript that nobody vouches for. */
export interface Script {
  readonly code: string
  /** What the code sees as `input`; default null. */
  readonly input?: Json
  /** Whose code it is: no two tenants ever share an engine. Default: the principal that asks. */
  readonly tenant?: string
  readonly limits?: ScriptLimits
}

/** A line that a script wrote to its console. */
export interface ConsoleLine {
  readonly level: 'debug' | 'info' | 'log' | 'warn' | 'error'
  readonly text: string
}

export interface ScriptResult {
  /** The value of the last expression, a promise awaited, as JSON; `undefined` is null. */
  readonly value: Json
  /** The first lines that it wrote to its console. */
  readonly console: readonly ConsoleLine[]
}

/**
 * Runs JavaScript of strangers. Throws SANDBOX_TIMEOUT, SANDBOX_MEMORY_LIMIT, SANDBOX_BLOCKED (it reached for what it may not have), SANDBOX_FAILED (an
 * exception of its own, and a result that is no JSON), each with `details.reason`; SANDBOX_BUSY; INVALID_VALUE for limits that cannot be held.
 * As the runtime "quickjs" it also runs plugins' plain JavaScript (`open` and `call`).
 */
export interface ScriptSandbox extends Runtime {
  run(script: Script, ctx: CallContext): Promise<ScriptResult>
}

/** The sandbox for JavaScript. */
export const ScriptSandbox = defineService<ScriptSandbox>('runtime.quickjs', {
  api: 1,
  methods: { run: 'call', open: 'call', call: 'call' },
})
