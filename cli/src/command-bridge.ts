import { defineService, type CallContext } from '@svc/core'
import type { RequestMethod, StreamEvent } from '@svc/core/contracts'

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

/** A request of an isolated command to a server of this home. */
export interface BridgedRequest {
  readonly port?: number
  readonly method: RequestMethod
  readonly path: string
  readonly body?: object
}

/** The requests of an isolated command to svc. */
export interface CommandBridge {
  /** Reads these keys of the configuration, within the section of the plugin. */
  setting(keys: readonly string[], ctx: CallContext): Promise<unknown>
  /** Finds a server of this home. Undefined: the command should use its own host. */
  server(choice: { readonly port?: number }, ctx: CallContext): Promise<{ readonly url: string } | undefined>
  /** Sends a request that the permission `server` names, with the credentials of the user. Throws NOT_PERMITTED. */
  request(asked: BridgedRequest, ctx: CallContext): Promise<unknown>
  stream(asked: BridgedRequest, ctx: CallContext): AsyncIterable<StreamEvent>
  text(asked: BridgedRequest, ctx: CallContext): AsyncIterable<string>
  /** Resolves at Ctrl-C. */
  interrupted(ctx: CallContext): Promise<void>
}

export const CommandBridge = defineService<CommandBridge>('bridge', {
  api: 1,
  methods: { setting: 'call', server: 'call', request: 'call', stream: 'stream', text: 'stream', interrupted: 'call' },
})
