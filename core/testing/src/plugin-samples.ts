import type { ConfigTree, PluginRef } from '@svc/core'
import type { Json, RouteRequest } from '@svc/core/contracts'
import type { AuthSubject } from './auth-kit.ts'
import type { Fixture } from './host.ts'
import type { NodeSamples } from './node-kit.ts'
import type { ProviderKitOptions, ProviderRequests, ProviderSubject } from './provider-subject.ts'
import type { ToolSamples } from './tool-kit.ts'

/** Samples that show a plugin at work. All are optional: the kit generates data where it can, and reports what it skipped. */
export interface PluginSamples {
  /** The configuration, or a function that returns the one of each case. Default: a minimal one by its schema. */
  readonly config?: ConfigTree | ((run: KitRun) => ConfigTree | Promise<ConfigTree>)
  /** Environment variables that it needs. */
  readonly env?: Readonly<Record<string, string>>
  /** Plugins that it needs. */
  readonly beside?: readonly PluginRef[]
  /** Services and items that it needs, provided by the test. */
  readonly give?: readonly Fixture[]
  /**
   * Samples by tool name, for the whole toolKit. `madeUp`: the tool can be called with generated arguments although it writes,
   * executes or uses the network.
   */
  readonly tools?: Readonly<Record<string, ToolSamples & { readonly madeUp?: boolean }>>
  /** Samples of its providers, for the whole providerKit. `connections`: those of the fake upstream that `config` points to. */
  readonly provider?: ProviderRequests & ProviderKitOptions & Pick<ProviderSubject, 'connections'>
  /** Samples by node name, for the whole nodeKit. */
  readonly nodes?: Readonly<Record<string, NodeSamples>>
  /** Samples by scheme name, for the whole authKit. */
  readonly auth?: Readonly<Record<string, Pick<AuthSubject, 'good' | 'bad' | 'passesOn'>>>
  /** Requests by route name. */
  readonly routes?: Readonly<Record<string, readonly RouteSample[]>>
  /**
   * Packages that keep connections open, such as `pg-pool`. The kit accepts open handles that do not grow with the calls; it
   * does not count those of these packages at all until the plugin ends.
   */
  readonly pools?: readonly string[]
  /** For a store whose data lasts: a host that starts again with the same configuration has it. */
  readonly lasts?: boolean
}

/** One case of a kit. A store case that opens the same data again has the same run. */
export interface KitRun {
  /** Differs for each case: for the name of a schema or a prefix of keys. */
  readonly id: string
  /** An empty folder, which the kit removes after the case. */
  readonly folder: string
}

/** A request to a route. */
export interface RouteSample extends Partial<RouteRequest> {
  expect?(answer: Json | string): void
}

export interface PluginKitOptions extends PluginSamples {
  /**
   * The plugins that isolate others (`@svc/plugin-sandbox-process`, `@svc/plugin-isolation`): the kit runs the plugin in a process
   * of its own, confined to its manifest. Default: none; it runs in this process.
   */
  readonly sandbox?: readonly PluginRef[]
  /** Seed of generated data. Default 1. */
  readonly seed?: number
  /** Number of generated calls per contribution. Default 50. */
  readonly rounds?: number
}
