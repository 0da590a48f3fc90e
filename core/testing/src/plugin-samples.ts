import type { ConfigTree, PluginRef } from '@svc/core'
import type { Json, RouteRequest } from '@svc/core/contracts'
import type { AuthSubject } from './auth-kit.ts'
import type { Fixture } from './host.ts'
import type { NodeSamples } from './node-kit.ts'
import type { ProviderKitOptions, ProviderRequests, ProviderSubject } from './provider-subject.ts'
import type { ToolSamples } from './tool-kit.ts'

/** Samples that show a plugin at work. All are optional: the kit generates data where it can, and reports what it skipped. */
export interface PluginSamples {
  /** The configuration. Default: a minimal one by its schema. */
  readonly config?: ConfigTree
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
  readonly auth?: Readonly<Record<string, Pick<AuthSubject, 'good' | 'bad'>>>
  /** Requests by route name. */
  readonly routes?: Readonly<Record<string, readonly RouteSample[]>>
  /** For a store whose data lasts: a host that starts again with the same configuration has it. */
  readonly lasts?: boolean
}

/** A request to a route. */
export interface RouteSample extends Partial<RouteRequest> {
  expect?(answer: Json | string): void
}

export interface PluginKitOptions extends PluginSamples {
  /** Seed of generated data. Default 1. */
  readonly seed?: number
  /** Number of generated calls per contribution. Default 50. */
  readonly rounds?: number
}
