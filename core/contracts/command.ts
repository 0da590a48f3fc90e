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
  print(line: string): void
  /** The configured host, started in this process at the first call without what would listen; closed after the command. */
  host(): Promise<RunningHost>
}

/**
 * The default export of a command's module: answers the exit code, 0 where it answers nothing. The manifest names it:
 * `"contributes": { "commands": { "weather now": { "summary": "Tell the weather", "module": "./src/now.ts" } } }`
 */
export type Command = (call: CommandCall) => Promise<number | undefined | void>
