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
import { type ModelEvent, type ModelRequest, type Provider, Providers } from '@svc/core/contracts'
import { type LeftoverWatch, watchLeftovers } from './leftovers.ts'
import { createStrict } from './strict.ts'

/** Something a test gives in place of a plugin. */
export type Fixture = PluginRef

/** Gives a service: `testHost([plugin], { give: [service(Store, store)] })`. */
export function service<T, H>(token: ServiceToken<T, H>, implementation: T): Fixture {
  const plugin = definePlugin({ provides: token as ServiceToken<T>, setup: () => implementation as never })
  return { name: `test:${token.name}`, use: plugin }
}

/** Gives one item of a slot: `item(Tools, 'weather', tool)`. */
export function item<T>(slot: SlotToken<T>, name: string, value: T): Fixture {
  return { name: `test:${slot.name}/${name}`, use: definePlugin({ setup: scope => void scope.add(slot, name, value) }) }
}

/** What a test host is made of besides its plugins. */
export interface TestHostOptions extends Omit<HostOptions, 'plugins' | 'crossing' | 'config'> {
  readonly give?: readonly Fixture[]
  readonly config?: ConfigTree
  /** Default true: everything between plugins is cloned, frozen and checked, as if each lived in a process of its own. */
  readonly strict?: boolean
}

/**
 * Starts a host with these plugins (`new URL('../..', import.meta.url)` is the package a test stands in) and what the test gives.
 * Strict unless told otherwise, so that a plugin that passes can be moved to a process of its own.
 * Its close throws LEFTOVERS when the plugins leave timers, sockets or processes open.
 */
export async function testHost(plugins: readonly PluginRef[], options: TestHostOptions = {}): Promise<RunningHost> {
  const { give = [], strict = true, ...rest } = options
  const watch = watchLeftovers()
  const crossing = strict ? createStrict(watch.run) : createDirect(watch.run)
  try {
    return watched(await startHost({ ...rest, plugins: [...plugins, ...give], boundary: crossing }), watch)
  } catch (error) {
    await watch.end()
    throw error
  }
}

/** Everything as it is; only who works is told. */
const createDirect = (run: LeftoverWatch['run']): PluginBoundary => ({
  setup: run,
  service: (_token, implementation) => implementation,
  item: (_token, item) => item,
  tap: (_ref, tap, by) => (value, ctx) => run(by, () => tap(value, ctx)),
})

/** The host, whose close also tells what its plugins left open. */
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
    close,
    [Symbol.asyncDispose]: () => close(),
  }
}

/** The circumstances of a call in a test; `abort` ends it. */
export function testContext(parts: { principal?: Principal; signal?: AbortSignal; requestId?: string } = {}): CallContext {
  const { principal = SYSTEM, signal = new AbortController().signal, requestId = 'test' } = parts
  return { principal, signal, requestId }
}

/** Gathers a stream. */
export async function gather<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** Providers of one plugin; closing them closes its host. */
export interface OpenProviders extends AsyncDisposable {
  /** Of the first entry. */
  readonly provider: Provider
  named(name: string): Provider
  close(): Promise<void>
}

/** The plugin in this folder in a strict host, with these entries of `providers`. */
export async function openProviders(plugin: URL, entries: { readonly [name: string]: object }): Promise<OpenProviders> {
  const host = await testHost([plugin], { config: { providers: { ...entries } } })
  const named = (name: string) => host.slot(Providers).get(name)!
  const close = () => host.close()
  return { provider: named(Object.keys(entries)[0]!), named, close, [Symbol.asyncDispose]: close }
}

/** All events of an answer. */
export const ask = (provider: Provider, request: ModelRequest): Promise<ModelEvent[]> =>
  Array.fromAsync(provider.chat(request, testContext()))

/** What a provider fails with. */
type ProviderFailed = Error & { readonly code?: string; readonly hint?: string; readonly details: Record<string, unknown> }

/** What this work fails with. Rejects where it does not fail. */
export const failureOf = (work: Promise<unknown>): Promise<ProviderFailed> =>
  work.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: ProviderFailed) => error
  )
