import { type AnyHook, type AnyService, type AnySlot, defineService, type JsonSchema, type CallContext } from '@svc/core'
import type { RefusalKind } from '@svc/core/contracts'
import type { FrameBudget } from '../processes/frames.ts'

/** Bytes of one message of an isolated plugin: a result of 10 MiB fits, and reading many small things of it does not stop the host's loop for seconds. */
export const MAX_PLUGIN_MESSAGE = 16 * 1024 * 1024

/** What is in such a message: two million numbers fit, and take a tenth of a second. */
export const PLUGIN_MESSAGE_BUDGET: FrameBudget = { values: 2 * 1024 * 1024, characters: MAX_PLUGIN_MESSAGE }

/** What a plugin declares, without its code: tokens are plain data. */
export interface PluginDescription {
  readonly section?: string
  readonly instances?: string
  readonly type?: string
  readonly config?: JsonSchema
  readonly requires: Readonly<Record<string, AnyService | AnySlot>>
  readonly optional: Readonly<Record<string, AnyService>>
  readonly provides?: AnyService
}
/** One thing that crosses as a stub. */
export interface RemoteItem {
  readonly path: string
  readonly methods: readonly string[]
  readonly data?: object
}
/** What came into a mirrored slot and what left it. */
export interface SlotViewChange {
  readonly version: number
  readonly added: readonly (RemoteItem & { readonly name: string; readonly owner: string })[]
  readonly removed: readonly string[]
}
export interface SetupRequest {
  readonly config: unknown
  readonly instance?: string
  /** Keys of services that are there: optional ones may not be. */
  readonly services: readonly string[]
}

/** The isolated side. */
export interface PluginRunner {
  describe(ctx: CallContext): Promise<PluginDescription>
  /** Ends with everything taken that the plugin added; answers with the methods of the service it provides. */
  setup(setup: SetupRequest, ctx: CallContext): Promise<readonly string[]>
  /** A slot that the plugin requires has changed; the first call fills it. */
  change(key: string, change: SlotViewChange, ctx: CallContext): Promise<void>
  close(ctx: CallContext): Promise<void>
  /** Answers at once, unless its loop is held up. */
  beat(ctx: CallContext): Promise<void>
}
export const PluginRunner = defineService<PluginRunner>('plugin_runner', {
  api: 1,
  methods: { describe: 'call', setup: 'call', change: 'call', close: 'call', beat: 'call' },
})

/** Work of the host's own beside code of a plugin: behind its wall, in a process of its own. */
export interface TaskRunner {
  run(input: unknown, ctx: CallContext): Promise<unknown>
}
export const TaskRunner = defineService<TaskRunner>('task', { api: 1, methods: { run: 'call' } })

export type Level = 'debug' | 'info' | 'warn' | 'error'

/** The host's side: what an isolated plugin asks of its scope. */
export interface HostBridge {
  add(slot: AnySlot, name: string, item: RemoteItem, ctx: CallContext): Promise<void>
  tap(hook: AnyHook, path: string, options: { stage?: number; limitMs?: number }, ctx: CallContext): Promise<void>
  /** Takes back what was added or tapped. */
  remove(path: string, ctx: CallContext): Promise<void>
  log(level: Level, facts: object, message: string | undefined, ctx: CallContext): Promise<void>
  /** It reached for what it does not declare. */
  refused(kind: RefusalKind, what: string, ctx: CallContext): Promise<void>
}
export const REFUSAL_KINDS: readonly string[] = ['env', 'network', 'read', 'write', 'process', 'hooks'] satisfies RefusalKind[]
export const HostBridge = defineService<HostBridge>('host_bridge', {
  api: 1,
  methods: { add: 'call', tap: 'call', remove: 'call', log: 'call', refused: 'call' },
})

/** One tap, called from the other side. */
export interface RemoteTap {
  tap(value: unknown, ctx: CallContext): Promise<unknown>
}
export const RemoteTap = defineService<RemoteTap>('tap', { api: 1, methods: { tap: 'call' } })

/** The hooks of the service that an isolated plugin provides, for it to call. */
export function hooksToken(provides: AnyService | undefined): AnyService {
  const methods = Object.fromEntries(Object.keys(provides?.hooks ?? {}).map(hook => [hook, 'call' as const]))
  return { what: 'service', name: 'hooks', api: 1, methods, hooks: {} }
}
