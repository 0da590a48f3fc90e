import { type CallContext, defineService, type Runtime } from '@svc/core'
import type { Json } from './store.ts'

/** Limits of a process in the sandbox. */
export interface ProcessLimits {
  /** Memory of the process and its children in bytes. Rejected when this machine cannot enforce it. */
  readonly memoryBytes?: number
  /**
   * Maximum number of processes and threads; Node alone needs a dozen. Rejected when this machine cannot enforce it. Absent:
   * 256 where it can.
   */
  readonly pids?: number
  /** False: an empty network. True: the network of this machine, including loopback. */
  readonly networkAccess: boolean
  /** False: folders that are visible only to this process (`cwd`, `readPaths`) are also writable. System folders never are. */
  readonly filesystemReadonly: boolean
  /** Writable files and folders, after links are resolved. */
  readonly allowedPaths: readonly string[]
  /** Readable files and folders, besides those of the system and the program. */
  readonly readPaths?: readonly string[]
}

/** A process to run. */
export interface ProcessRequest {
  /** A name to look up in `env.PATH` (else that of the host), or a path. */
  readonly command: string
  readonly args: readonly string[]
  /** Its only variables. `PATH`, `HOME` and `TMPDIR` have defaults. */
  readonly env: { readonly [name: string]: string }
  /** The working folder, which is readable. Absent: its private `/tmp`. */
  readonly cwd?: string
  readonly limits: ProcessLimits
  /** Whether it is a Node program, which also runs under Node's permission model. Absent: true when the command is `node`. */
  readonly node?: boolean
  /**
   * Whether it runs as long as the server. Then a writable folder is rejected if a protected path in it is missing or is a
   * file, because later changes by people would end its protection. Git folders are read-only as a whole.
   */
  readonly lasting?: boolean
}

/** The mechanism of a limit: a control group (version 2 or 1), a systemd scope, or limits of each single process. */
export type LimitHolder = 'cgroup2' | 'cgroup1' | 'systemd' | 'rlimit'

/** The enforced limits of one process. null: not requested and not enforced. */
export interface Enforced {
  readonly memory: LimitHolder | null
  readonly pids: LimitHolder | null
  readonly network: 'none' | 'host'
  /** Whether Node's permission model is on. */
  readonly nodePermission: boolean
}

/**
 * A command line that enforces the request. Start it with exactly these variables. When it exits, all processes in it have
 * ended.
 */
export interface WrappedProcess {
  readonly file: string
  readonly args: readonly string[]
  readonly env: { readonly [name: string]: string }
  /** For `release`. */
  readonly id: string
  readonly enforced: Enforced
}

/** Limits that a process has reached. */
export interface Released {
  readonly outOfMemory: boolean
  readonly outOfPids: boolean
}

/** Capabilities of this machine. */
export interface SandboxAbility {
  /** Whether processes can run: bubblewrap is installed and can create its namespaces. */
  readonly ready: boolean
  /** Its version. */
  readonly bubblewrap: string | null
  readonly memory: LimitHolder | null
  readonly pids: LimitHolder | null
  /** The missing part and how to fix it. */
  readonly reason?: string
  readonly hint?: string
}

/** Runs untrusted programs. A request that this machine cannot enforce is rejected, never run without limits. */
export interface ProcessSandbox {
  /**
   * Prepares a process and returns its command line. It starts nothing, but creates its limits: call `release` when the process
   * has exited or was not started. Throws SANDBOX_UNAVAILABLE when this machine cannot enforce the request, SANDBOX_PATH for a
   * path that must not be exposed, SANDBOX_COMMAND for a missing program.
   */
  wrap(request: ProcessRequest, ctx: CallContext): Promise<WrappedProcess>
  /** Kills remaining processes, removes the sandbox and returns the limits that were reached. Unknown ids are ignored. */
  release(id: string, ctx: CallContext): Promise<Released>
  /** Tests the capabilities of this machine. A positive result is cached. */
  probe(ctx: CallContext): Promise<SandboxAbility>
}

export const ProcessSandbox = defineService<ProcessSandbox>('process_sandbox', {
  api: 1,
  methods: { wrap: 'call', release: 'call', probe: 'call' },
})

/** Limits of a script. Absent values are those of the sandbox configuration, or not allowed. */
export interface ScriptLimits {
  /** Total time limit in milliseconds, waiting included. */
  readonly timeoutMs?: number
  /** Memory in bytes, including the engine. */
  readonly memoryBytes?: number
  /** Hosts that `fetch` can reach; `*` means all public hosts. Without hosts, `fetch` does not exist. */
  readonly network?: readonly string[]
  /** Folders that `files` can read and write. Without folders, `files` does not exist. */
  readonly paths?: readonly string[]
}

/** Untrusted JavaScript. */
export interface Script {
  readonly code: string
  /** The value of `input` in the code. Default null. */
  readonly input?: Json
  /** The owner of the code. Tenants never share an engine. Default: the principal of the context. */
  readonly tenant?: string
  readonly limits?: ScriptLimits
}

/** A line that a script wrote to its console. */
export interface ConsoleLine {
  readonly level: 'debug' | 'info' | 'log' | 'warn' | 'error'
  readonly text: string
}

export interface ScriptResult {
  /** The value of the last expression as JSON. Promises are awaited; `undefined` becomes null. */
  readonly value: Json
  /** The first lines of its console output. */
  readonly console: readonly ConsoleLine[]
}

/**
 * Runs untrusted JavaScript. Throws SANDBOX_TIMEOUT, SANDBOX_MEMORY_LIMIT, SANDBOX_BLOCKED (a forbidden access) and
 * SANDBOX_FAILED (an exception of the script, or a result that is not valid JSON), each with `details.reason`. Throws
 * SANDBOX_BUSY, and INVALID_VALUE for limits that it cannot enforce. As the runtime "quickjs" it also runs the plain JavaScript
 * of plugins (`open` and `call`).
 */
export interface ScriptSandbox extends Runtime {
  run(script: Script, ctx: CallContext): Promise<ScriptResult>
}

/** The sandbox for JavaScript. */
export const ScriptSandbox = defineService<ScriptSandbox>('runtime.quickjs', {
  api: 1,
  methods: { run: 'call', open: 'call', call: 'call' },
})
