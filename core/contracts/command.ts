import type { RunningHost } from '@svc/core'

/** What a command that a plugin contributes is called with. */
export interface CommandCall {
  /** What stood after the command's name. */
  readonly args: readonly string[]
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal
  /** The svc home. */
  readonly home: string
  /** Writes a line to the standard output. */
  readonly print: (line: string) => void
  /** Writes a line for a person to the standard error: what a script that reads the output must not find there. */
  readonly note: (line: string) => void
  /** What the configuration has under these keys, unchecked and without running any plugin: for what must work where the host cannot start. */
  readonly setting: (...keys: readonly string[]) => Promise<unknown>
  /** The configured host, started in this process at the first call without what would listen; closed after the command. */
  readonly host: () => Promise<RunningHost>
}

/**
 * The default export of a command's module: answers the exit code, 0 where it answers nothing. The manifest names it:
 * `"contributes": { "commands": { "weather now": { "summary": "Tell the weather", "module": "./src/now.ts", "usage": "<place>" } } }`.
 * A module that is a key of the package's `exports` is resolved by them: source here, `dist` where it is installed.
 */
export type Command = (call: CommandCall) => Promise<number | undefined | void>
