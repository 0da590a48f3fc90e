import type { Log } from './log.ts'
import type { SvcError } from './svc-error.ts'
import type { Schema } from '../config/schema.ts'
import type { AnyService, AnySlot, HookCallers, HookRef, SlotToken, SlotView, TapFunction } from './token.ts'

/** What a tap may ask for. */
export interface TapOptions {
  /** Taps run in start order; a lower stage runs earlier. Default 0. */
  stage?: number
  /** Milliseconds this tap may take. Default `host.tap_timeout_ms`. */
  limitMs?: number
}

/** A plugin's hold on the host: all it adds, taps or opens goes through here and is undone with it, in reverse. */
export interface Scope<C = unknown, H = object> {
  /** The plugin's package name. */
  readonly name: string
  /** Which entry of `instances` this set-up is for. */
  readonly instance: string | undefined
  /** The checked section of the configuration, defaults filled in; frozen. */
  readonly config: C
  readonly log: Log
  /** Aborts when the plugin is closed. */
  readonly signal: AbortSignal
  /** Calls the hooks of the service that this plugin provides. */
  readonly hooks: HookCallers<H>
  /** Adds to a slot; returns the removal. Throws NAME_TAKEN, CONTRIBUTION_UNDECLARED, SCOPE_CLOSED. */
  add<T>(slot: SlotToken<T>, name: string, item: T): () => void
  /** Joins a hook; returns the removal. */
  tap<T>(hook: HookRef<T>, tap: TapFunction<T>, options?: TapOptions): () => void
  /** Takes charge of a disposable: it is closed with the plugin. */
  use<T extends Disposable | AsyncDisposable>(thing: T): T
  /** Runs at close, in reverse order of what was asked. */
  defer(undo: () => unknown): void
}

export type Tokens = Readonly<Record<string, AnyService | AnySlot>>
type ServiceTokens = Readonly<Record<string, AnyService>>
type DependencyOf<K> = K extends { readonly what: 'slot'; readonly '~item'?: infer T }
  ? SlotView<NonNullable<T>>
  : K extends { readonly what: 'service'; readonly '~service'?: infer T }
    ? NonNullable<T>
    : never
/** What `setup` receives: exactly what `requires` and `optional` name. */
export type Dependencies<R, O> = { readonly [K in keyof R]: DependencyOf<R[K]> } & {
  readonly [K in keyof O]: DependencyOf<O[K]> | undefined
}
type HooksOf<P> = P extends { readonly hooks: { readonly [K in keyof (infer H)]: unknown } } ? HookTypesOf<P, H> : object
type HookTypesOf<P, H> = { [K in keyof H]: P extends { readonly hooks: Record<K, HookRef<infer T>> } ? T : never }
type ServiceOf<P> = P extends { readonly '~service'?: infer T } ? NonNullable<T> : void

/** HOW a plugin works; WHAT it is stands in the `svc` part of its package.json. */
export interface PluginDefinition<
  S extends string,
  C,
  R extends Tokens,
  O extends ServiceTokens,
  P,
  I extends string,
  T extends string,
> {
  /** The part of the configuration it owns, as a literal: `'tools.weather'`. */
  section?: S
  /** Set up once per entry of this section whose `type` is `type`: two servers of one kind side by side. */
  instances?: I
  /** The `type` of the entries that are this plugin's; an entry without `type` has its own name as type. */
  type?: T
  /** Checks the section (or the entry) and fills in defaults. */
  config?: Schema<C>
  /**
   * Finds what is wrong with what its configuration names, a file of its own for example: before anything is set up, and for `svc config check`. Changes
   * nothing, needs nothing but its (good) configuration; answers the problems, which are told with all others. `instance`: the name of the entry, for a plugin
   * with `instances`.
   */
  check?(config: C, instance?: string): Promise<readonly SvcError[]>
  /** What it cannot work without: services (these make the start order) and slots (these do not). */
  requires?: R
  /** Services that it uses when they are there. */
  optional?: O
  /** The service it provides: `setup` returns it. */
  provides?: P
  setup(scope: Scope<C, HooksOf<P>>, given: Dependencies<R, O>): ServiceOf<P> | Promise<ServiceOf<P>>
}

/** A plugin as its module exports it: `S` is its section, `C` the configuration, `I` and `T` the section and type of its instances. */
export interface Plugin<S extends string = string, C = unknown, I extends string = string, T extends string = string> {
  readonly section?: S
  readonly instances?: I
  readonly type?: T
  readonly config?: Schema<C>
  check?(config: C, instance?: string): Promise<readonly SvcError[]>
  readonly requires: Tokens
  readonly optional: ServiceTokens
  readonly provides?: AnyService
  setup(scope: Scope<C>, given: Record<string, unknown>): unknown
  /** Of a plugin in a process of its own: how that stands, for each instance. */
  processStatus?(instance?: string): PluginProcessStatus | undefined
}

/** How the process of an isolated plugin stands. */
export interface PluginProcessStatus {
  readonly state: 'running' | 'restarting' | 'quarantined'
  /** By what it is held: the process sandbox, Node's permission model alone, or nothing. */
  readonly hold: 'sandbox' | 'permissions' | 'nothing'
  /** Of the process that was started; what runs in a sandbox is a child of it. */
  readonly pid?: number
  /** How often it was brought up again. */
  readonly restarts: number
  /** What it reached for and did not get, by kind: `env`, `network`, `read`, `write`, `process`. */
  readonly refusals: Readonly<Record<string, number>>
  /** Processor time of all its processes, in milliseconds. */
  readonly cpuMs: number
  readonly memoryBytes: number
}

/**
 * Declares a plugin: `export default definePlugin({ requires: { tools: Tools }, setup(scope, { tools }) { … } })`.
 * The parameter list is the dependency list; there is no registry to ask.
 */
export function definePlugin<
  const S extends string = never,
  C = Record<never, never>,
  R extends Tokens = Record<never, never>,
  O extends ServiceTokens = Record<never, never>,
  P = undefined,
  const I extends string = never,
  const T extends string = string,
>(definition: PluginDefinition<S, C, R, O, P, I, T>): Plugin<S, C, I, T> {
  return Object.freeze({ requires: {}, optional: {}, ...definition }) as unknown as Plugin<S, C, I, T>
}
