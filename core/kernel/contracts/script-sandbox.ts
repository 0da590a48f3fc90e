import { defineService, type Runtime, type CallContext } from '@svc/core'
import type { Json } from './store.ts'

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
