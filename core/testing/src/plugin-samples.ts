import type { ConfigTree, PluginRef } from '@svc/core'
import type { Json, RouteRequest } from '@svc/core/contracts'
import type { AuthSubject } from './auth-kit.ts'
import type { Fixture } from './host.ts'
import type { NodeSamples } from './node-kit.ts'
import type { ProviderKitOptions, ProviderRequests, ProviderSubject } from './provider-subject.ts'
import type { ToolSamples } from './tool-kit.ts'

/** What shows a plugin at work. All of it may be left out: then the kit makes up what it can, and says what it skipped. */
export interface PluginSamples {
  /** The configuration; default: as little as its schema takes. */
  readonly config?: ConfigTree
  /** Variables of the environment that it needs. */
  readonly env?: Readonly<Record<string, string>>
  /** Plugins that it needs. */
  readonly beside?: readonly PluginRef[]
  /** Services and items that it needs, from the test. */
  readonly give?: readonly Fixture[]
  /** By name: the whole toolKit runs then. `madeUp`: it may be called with made-up arguments although it writes, executes or asks the network. */
  readonly tools?: Readonly<Record<string, ToolSamples & { readonly madeUp?: boolean }>>
  /** Of its providers: the whole providerKit runs then. `connections`: of the fake upstream that `config` leads to. */
  readonly provider?: ProviderRequests & ProviderKitOptions & Pick<ProviderSubject, 'connections'>
  /** By name: the whole nodeKit runs then. */
  readonly nodes?: Readonly<Record<string, NodeSamples>>
  /** By name: the whole authKit runs then. */
  readonly auth?: Readonly<Record<string, Pick<AuthSubject, 'good' | 'bad'>>>
  /** By name: requests that are answered. */
  readonly routes?: Readonly<Record<string, readonly RouteSample[]>>
  /** Of a store whose data lasts: a host that is started again with the same configuration has it. */
  readonly lasts?: boolean
}

/** A request to a route. */
export interface RouteSample extends Partial<RouteRequest> {
  expect?(answer: Json | string): void
}

export interface PluginKitOptions extends PluginSamples {
  /** What is made up follows from it; default 1. */
  readonly seed?: number
  /** So many made-up calls of each thing; default 50. */
  readonly rounds?: number
}
