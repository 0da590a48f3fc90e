import {
  type CallContext,
  type CloseOptions,
  type ConfigTree,
  definePlugin,
  type HostOptions,
  type PluginBoundary,
  type PluginRef,
  type Principal,
  type RunningHost,
  type ServiceToken,
  type SlotToken,
  startHost,
  SYSTEM,
} from '@svc/core'
import type { OpenHandle } from '@svc/runtime/isolation'
import { type ModelEvent, type ModelRequest, type Provider, Providers } from '@svc/core/contracts'
import { type LeftoverWatch, watchLeftovers } from './leftovers.ts'
import { createStrict, type LateContextListener } from './strict.ts'

/** A stand-in for a plugin in a test. */
export type Fixture = PluginRef

/** Provides a service: `testHost([plugin], { give: [service(Store, store)] })`. */
export function service<T, H>(token: ServiceToken<T, H>, implementation: T): Fixture {
  const plugin = definePlugin({ provides: token as ServiceToken<T>, setup: () => implementation as never })
  return { name: `test:${token.name}`, use: plugin }
}

/** Provides one item of a slot: `item(Tools, 'weather', tool)`. */
export function item<T>(slot: SlotToken<T>, name: string, value: T): Fixture {
  return { name: `test:${slot.name}/${name}`, use: definePlugin({ setup: scope => void scope.add(slot, name, value) }) }
}

/** Options of a test host. */
export interface TestHostOptions extends Omit<HostOptions, 'plugins' | 'crossing' | 'config'> {
  readonly give?: readonly Fixture[]
  readonly config?: ConfigTree
  /** Default true: all values between plugins are cloned, frozen and checked, as between processes. */
  readonly strict?: boolean
}

/**
 * Starts a host with these plugins (`new URL('../..', import.meta.url)` is the package that contains the test) and the
 * fixtures. It is strict by default, so that a plugin that passes also works in its own process. `close` throws LEFTOVERS when
 * the plugins leave timers, sockets or processes open.
 */
export async function testHost(plugins: readonly PluginRef[], options: TestHostOptions = {}): Promise<RunningHost> {
  return (await openTestHost(plugins, options)).host
}

/** A test host, and what its plugins do. */
export interface OpenTestHost {
  readonly host: RunningHost
  /** The open handles of a plugin of this process. */
  handles(plugin: string): OpenHandle[]
}

/** As `testHost`. `onLateContext`: called when a plugin uses the context of a call that has ended. */
export async function openTestHost(
  plugins: readonly PluginRef[],
  options: TestHostOptions,
  onLateContext?: LateContextListener
): Promise<OpenTestHost> {
  const { give = [], strict = true, ...rest } = options
  const watch = watchLeftovers()
  const crossing = strict ? createStrict(watch.run, onLateContext) : createDirect(watch.run)
  try {
    const host = watched(await startHost({ ...rest, plugins: [...plugins, ...give], boundary: crossing }), watch)
    return { host, handles: plugin => watch.open(plugin) }
  } catch (error) {
    await watch.end()
    throw error
  }
}

/** Passes all values unchanged and only tracks the running plugin. */
const createDirect = (run: LeftoverWatch['run']): PluginBoundary => ({
  setup: run,
  service: (_token, implementation) => implementation,
  item: (_token, item) => item,
  tap: (_ref, tap, by) => (value, ctx) => run(by, () => tap(value, ctx)),
})

/** Wraps the host so that `close` also reports what its plugins left open. */
function watched(host: RunningHost, watch: LeftoverWatch): RunningHost {
  let closing: Promise<void> | undefined
  const closeOnce = async (options?: CloseOptions) => {
    await host.close(options).finally(() => watch.end())
  }
  const close = (options?: CloseOptions) => (closing ??= closeOnce(options))
  return {
    log: host.log,
    service: token => host.service(token),
    slot: token => host.slot(token),
    report: () => host.report(),
    plan: () => host.plan(),
    leave: () => host.leave(),
    close,
    [Symbol.asyncDispose]: () => close(),
  }
}

/** Creates a call context for a test. */
export function testContext(parts: { principal?: Principal; signal?: AbortSignal; requestId?: string } = {}): CallContext {
  const { principal = SYSTEM, signal = new AbortController().signal, requestId = 'test' } = parts
  return { principal, signal, requestId }
}

/** Collects a stream. */
export async function gather<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** The providers of one plugin. Closing closes its host. */
export interface OpenProviders extends AsyncDisposable {
  /** The provider of the first entry. */
  readonly provider: Provider
  named(name: string): Provider
  close(): Promise<void>
}

/** Starts the plugin in this folder in a strict host, with these entries of `providers`. */
export async function openProviders(plugin: URL, entries: { readonly [name: string]: object }): Promise<OpenProviders> {
  const host = await testHost([plugin], { config: { providers: { ...entries } } })
  const named = (name: string) => host.slot(Providers).get(name)!
  const close = () => host.close()
  return { provider: named(Object.keys(entries)[0]!), named, close, [Symbol.asyncDispose]: close }
}

/** Collects all events of a model call. */
export const ask = (provider: Provider, request: ModelRequest): Promise<ModelEvent[]> =>
  Array.fromAsync(provider.chat(request, testContext()))

/** The error of a provider. */
type ProviderFailed = Error & { readonly code?: string; readonly hint?: string; readonly details: Record<string, unknown> }

/** Returns the error of failing work. Rejects when the work succeeds. */
export const failureOf = (work: Promise<unknown>): Promise<ProviderFailed> =>
  work.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: ProviderFailed) => error
  )
