import { defineService, type CallContext } from '@svc/core'

/** What is done with the commands of an isolated plugin: they are described where no command is named. Plain data. */
export interface CommandInput {
  readonly plugin: string
  readonly version: string
  readonly command?: { readonly id: string; readonly argv: readonly string[]; readonly home: string; readonly cwd: string }
}

/** An error with an exit code, which `this.error` and a wrong command line throw: what the task resolves with, because a thrown error crosses without its code. */
export interface CommandFailure {
  readonly code?: string
  readonly message: string
  readonly hint?: string
  readonly exit: number
}

/** What an isolated command asks of svc. */
export interface CommandDesk {
  /** What the configuration has under these keys, within the section of the plugin. */
  setting(keys: readonly string[], ctx: CallContext): Promise<unknown>
  /** Answers at Ctrl-C. */
  interrupted(ctx: CallContext): Promise<void>
}

export const CommandDesk = defineService<CommandDesk>('desk', { api: 1, methods: { setting: 'call', interrupted: 'call' } })
