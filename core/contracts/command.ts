import type { RunningHost } from '@svc/core'

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
  /** The configured host, started in this process at the first call without what would listen; closed after the command. */
  readonly host: () => Promise<RunningHost>
}
