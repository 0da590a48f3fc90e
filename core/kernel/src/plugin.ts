import type { Log } from './log.ts'
import type { SvcError } from './errors.ts'
import type { StartSpan } from './spans.ts'
import type { Schema } from '../config/schema.ts'
import type { AnyService, AnySlot, HookCallers, HookRef, SlotToken, SlotView, TapFunction } from './token.ts'

/** Options of a tap. */
export interface TapOptions {
  /** Taps run in start order; a lower stage runs earlier. Default 0. */
  stage?: number
  /** Time limit of this tap in milliseconds. Default: `host.tap_timeout_ms`. */
  limitMs?: number
}

/**
 * The connection of one plugin to the host. Everything that the plugin adds, taps or opens through its scope is undone at
 * close, in reverse order.
 */
export interface Scope<C = unknown, H = object> {
  /** The package name of the plugin. */
  readonly name: string
  /** The entry of `instances` that this setup belongs to. */
  readonly instance: string | undefined
  /** The validated section of the configuration with its defaults, frozen. */
  readonly config: C
  readonly log: Log
  /** Aborts when the plugin is closed. */
  readonly signal: AbortSignal
  /** Calls the hooks of the service that this plugin provides. */
  readonly hooks: HookCallers<H>
  /** Adds an item to a slot and returns its removal. Throws NAME_TAKEN, CONTRIBUTION_UNDECLARED, SCOPE_CLOSED. */
  add<T>(slot: SlotToken<T>, name: string, item: T): () => void
  /** Taps a hook and returns the removal. */
  tap<T>(hook: HookRef<T>, tap: TapFunction<T>, options?: TapOptions): () => void
  /**
   * Starts a span for work of the plugin, as a part of the trace in `ctx`. Pass on `span.ctx`, and call `span.end()`. It costs
   * nearly nothing while no plugin takes spans. An isolated plugin makes no spans of its own: svc times the calls to it.
   */
  readonly span: StartSpan
  /** Takes ownership of a disposable and closes it with the plugin. */
  use<T extends Disposable | AsyncDisposable>(thing: T): T
  /** Runs `undo` at close, in reverse order of the calls. */
  defer(undo: () => unknown): void
}

export type Tokens = Readonly<Record<string, AnyService | AnySlot>>
type ServiceTokens = Readonly<Record<string, AnyService>>
type DependencyOf<K> = K extends { readonly what: 'slot'; readonly '~item'?: infer T }
  ? SlotView<NonNullable<T>>
  : K extends { readonly what: 'service'; readonly '~service'?: infer T }
    ? NonNullable<T>
    : never
/** The dependencies that `setup` receives: exactly those that `requires` and `optional` name. */
export type Dependencies<R, O> = { readonly [K in keyof R]: DependencyOf<R[K]> } & {
  readonly [K in keyof O]: DependencyOf<O[K]> | undefined
}
type HooksOf<P> = P extends { readonly hooks: { readonly [K in keyof (infer H)]: unknown } } ? HookTypesOf<P, H> : object
type HookTypesOf<P, H> = { [K in keyof H]: P extends { readonly hooks: Record<K, HookRef<infer T>> } ? T : never }
/** What `setup` returns: one object with the methods of all services that the plugin provides. */
type Provided<P, A> = ServiceOf<P> & AllOf<A>
type AllOf<A> = A extends readonly [infer First, ...infer Rest] ? ServiceOf<First> & AllOf<Rest> : unknown
type ServiceOf<P> = P extends { readonly '~service'?: infer T } ? NonNullable<T> : void

/** The code of a plugin. Its `svc` part in package.json describes it before the code runs. */
export interface PluginDefinition<
  S extends string,
  C,
  R extends Tokens,
  O extends ServiceTokens,
  P,
  I extends string,
  T extends string,
  A extends readonly AnyService[],
> {
  /** The section of the configuration that the plugin owns, as a literal: `'tools.weather'`. */
  section?: S
  /**
   * The section whose entries are instances: the plugin is set up once per entry of its `type`, for example two servers of one
   * kind.
   */
  instances?: I
  /** The `type` of the entries that belong to this plugin. An entry without `type` has its own name as type. */
  type?: T
  /** Validates the section (or the entry) and fills in defaults. */
  config?: Schema<C>
  /**
   * Checks what the configuration refers to, for example a file, before any setup and for `svc config check`. It changes
   * nothing and needs only valid configuration. It returns problems, which svc reports with all others. `instance` is the name
   * of the entry, for a plugin with `instances`.
   */
  check?(config: C, instance?: string, context?: CheckContext): Promise<readonly SvcError[]>
  /** Required dependencies: services, which determine the start order, and slots, which do not. */
  requires?: R
  /** Services that the plugin uses when they exist. */
  optional?: O
  /** The service that the plugin provides: `setup` returns it. */
  provides?: P
  /**
   * Further services that the returned object implements. Each gives way to a plugin whose `provides` names it: a store provides
   * `Counts`, unless another plugin does.
   */
  alsoProvides?: A
  setup(scope: Scope<C, HooksOf<P>>, given: Dependencies<R, O>): Provided<P, A> | Promise<Provided<P, A>>
}

/** The circumstances of a `check`. */
export interface CheckContext {
  /**
   * Other processes of this server already run with the same configuration, or did until now: this worker replaces one that
   * died, or starts after a pause. A file that has become invalid since need not prevent the start.
   */
  readonly running: boolean
}

/**
 * A plugin as its module exports it: `S` is its section, `C` its configuration, `I` and `T` the section and type of its
 * instances.
 */
export interface Plugin<S extends string = string, C = unknown, I extends string = string, T extends string = string> {
  readonly section?: S
  readonly instances?: I
  readonly type?: T
  readonly config?: Schema<C>
  check?(config: C, instance?: string, context?: CheckContext): Promise<readonly SvcError[]>
  readonly requires: Tokens
  readonly optional: ServiceTokens
  readonly provides?: AnyService
  readonly alsoProvides?: readonly AnyService[]
  setup(scope: Scope<C>, given: Record<string, unknown>): unknown
  /** For a plugin in its own process: the status of that process, per instance. */
  processStatus?(instance?: string): PluginProcessStatus | undefined
}

/** Status of the process of an isolated plugin. */
export interface PluginProcessStatus {
  readonly state: 'running' | 'restarting' | 'quarantined'
  /** What confines the process: the process sandbox, Node's permission model alone, or nothing. */
  readonly hold: 'sandbox' | 'permissions' | 'nothing'
  /** The process that was started. A sandboxed program is a child of it. */
  readonly pid?: number
  /** How often the process was restarted. */
  readonly restarts: number
  /** Number of denied accesses by kind: `env`, `network`, `read`, `write`, `process`. */
  readonly refusals: Readonly<Record<string, number>>
  /** Processor time of all its processes, in milliseconds. */
  readonly cpuMs: number
  readonly memoryBytes: number
}

/**
 * Declares a plugin: `export default definePlugin({ requires: { tools: Tools }, setup(scope, { tools }) { … } })`. The second
 * parameter of `setup` lists the dependencies; there is no registry to query.
 */
export function definePlugin<
  const S extends string = never,
  C = Record<never, never>,
  R extends Tokens = Record<never, never>,
  O extends ServiceTokens = Record<never, never>,
  P = undefined,
  const I extends string = never,
  const T extends string = string,
  const A extends readonly AnyService[] = readonly [],
>(definition: PluginDefinition<S, C, R, O, P, I, T, A>): Plugin<S, C, I, T> {
  return Object.freeze({ requires: {}, optional: {}, ...definition }) as unknown as Plugin<S, C, I, T>
}
