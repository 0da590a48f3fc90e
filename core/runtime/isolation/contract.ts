import { type AnyHook, type AnyService, type AnySlot, defineService, type JsonSchema, type CallContext } from '@svc/core'
import type { RefusalKind } from '@svc/core/contracts'
import type { FrameBudget } from '../processes/frames.ts'
import type { OpenHandle } from './open-handles.ts'

/**
 * Maximum bytes of one message of an isolated plugin. A result of 10 MiB fits, and parsing many small values does not block the
 * event loop of the host for seconds.
 */
export const MAX_PLUGIN_MESSAGE = 16 * 1024 * 1024

/** Limits of the content of a message: two million numbers fit and take a tenth of a second. */
export const PLUGIN_MESSAGE_BUDGET: FrameBudget = { values: 2 * 1024 * 1024, characters: MAX_PLUGIN_MESSAGE }

/** The declarations of a plugin without its code. Tokens are plain data. */
export interface PluginDescription {
  readonly section?: string
  readonly instances?: string
  readonly type?: string
  readonly config?: JsonSchema
  readonly requires: Readonly<Record<string, AnyService | AnySlot>>
  readonly optional: Readonly<Record<string, AnyService>>
  readonly provides?: AnyService
  readonly alsoProvides?: readonly AnyService[]
}
/** An item that crosses the channel as a stub. */
export interface RemoteItem {
  readonly path: string
  readonly methods: readonly string[]
  readonly data?: object
}
/** Items that were added to a mirrored slot or removed from it. */
export interface SlotViewChange {
  readonly version: number
  readonly added: readonly (RemoteItem & { readonly name: string; readonly owner: string })[]
  readonly removed: readonly string[]
}
export interface SetupRequest {
  readonly config: unknown
  readonly instance?: string
  /** Keys of existing services. Optional ones can be missing. */
  readonly services: readonly string[]
  /** Watches the handles that the plugin opens, for tests. */
  readonly watched?: boolean
}

/** The isolated side of the channel. */
export interface PluginRunner {
  describe(ctx: CallContext): Promise<PluginDescription>
  /** Runs the setup. Resolves when the host has accepted all contributions, to the methods of the provided service. */
  setup(setup: SetupRequest, ctx: CallContext): Promise<readonly string[]>
  /** Updates a slot that the plugin requires. The first call fills it. */
  change(key: string, change: SlotViewChange, ctx: CallContext): Promise<void>
  /** Ends the plugin. Resolves to the handles that a watched plugin leaves open. */
  close(ctx: CallContext): Promise<readonly OpenHandle[]>
  /** The open handles of a watched plugin. */
  handles(ctx: CallContext): Promise<readonly OpenHandle[]>
  /** Returns at once unless the event loop is blocked. */
  beat(ctx: CallContext): Promise<void>
}
export const PluginRunner = defineService<PluginRunner>('plugin_runner', {
  api: 1,
  methods: { describe: 'call', setup: 'call', change: 'call', close: 'call', handles: 'call', beat: 'call' },
})

/** Code of the host that runs next to the code of a plugin, in its sandboxed process. */
export interface TaskRunner {
  run(input: unknown, ctx: CallContext): Promise<unknown>
}
export const TaskRunner = defineService<TaskRunner>('task', { api: 1, methods: { run: 'call' } })

export type Level = 'debug' | 'info' | 'warn' | 'error'

/** The host side of the channel: the operations of an isolated plugin on its scope. */
export interface HostBridge {
  add(slot: AnySlot, name: string, item: RemoteItem, ctx: CallContext): Promise<void>
  tap(hook: AnyHook, path: string, options: { stage?: number; limitMs?: number }, ctx: CallContext): Promise<void>
  /** Removes an item or a tap. */
  remove(path: string, ctx: CallContext): Promise<void>
  log(level: Level, facts: object, message: string | undefined, ctx: CallContext): Promise<void>
  /** Reports a denied access. */
  refused(kind: RefusalKind, what: string, ctx: CallContext): Promise<void>
}
export const REFUSAL_KINDS: readonly string[] = [
  'env',
  'network',
  'read',
  'write',
  'process',
  'hooks',
  'spaces',
] satisfies RefusalKind[]
export const HostBridge = defineService<HostBridge>('host_bridge', {
  api: 1,
  methods: { add: 'call', tap: 'call', remove: 'call', log: 'call', refused: 'call' },
})

/** One tap, called by the other side. */
export interface RemoteTap {
  tap(value: unknown, ctx: CallContext): Promise<unknown>
}
export const RemoteTap = defineService<RemoteTap>('tap', { api: 1, methods: { tap: 'call' } })

/** One table of all services that a plugin provides: its object implements them together. */
export function providedToken({
  provides,
  alsoProvides = [],
}: Pick<PluginDescription, 'provides' | 'alsoProvides'>): AnyService | undefined {
  return (
    provides && {
      ...provides,
      methods: Object.assign({}, ...[provides, ...alsoProvides].map(token => token.methods)) as AnyService['methods'],
    }
  )
}

/** A service token with the hooks of the provided service, for the plugin to call. */
export function hooksToken(provides: AnyService | undefined): AnyService {
  const methods = Object.fromEntries(Object.keys(provides?.hooks ?? {}).map(hook => [hook, 'call' as const]))
  return { what: 'service', name: 'hooks', api: 1, methods, hooks: {} }
}
