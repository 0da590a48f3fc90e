import { defineService, type CallContext } from '@svc/core'

/**
 * The task of the process of an isolated plugin: run a command, or describe all commands if `command` is absent. Plain data.
 */
export interface CommandInput {
  readonly plugin: string
  readonly version: string
  readonly command?: { readonly id: string; readonly argv: readonly string[]; readonly home: string; readonly cwd: string }
}

/** An error with an exit code. The task resolves with it, because a thrown error loses its code between processes. */
export interface CommandFailure {
  readonly code?: string
  readonly message: string
  readonly hint?: string
  readonly exit: number
}

/** The requests of an isolated command to svc. */
export interface CommandBridge {
  /** Reads these keys of the configuration, within the section of the plugin. */
  setting(keys: readonly string[], ctx: CallContext): Promise<unknown>
  /** Resolves at Ctrl-C. */
  interrupted(ctx: CallContext): Promise<void>
}

export const CommandBridge = defineService<CommandBridge>('bridge', { api: 1, methods: { setting: 'call', interrupted: 'call' } })
