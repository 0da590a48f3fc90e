import {
  type CloseOptions,
  type ConfigTree,
  type PluginBoundary,
  definePlugin,
  type HostOptions,
  type PluginRef,
  type RunningHost,
  type ServiceToken,
  type SlotToken,
  startHost,
} from '@svc/core'
import { type Watch, watchLeftovers } from './leftovers.ts'
import { createStrict } from './strict.ts'

/** Something a test gives in place of a plugin. */
export type Gift = PluginRef

/** Gives a service: `testHost([plugin], { give: [service(Store, store)] })`. */
export function service<T, H>(token: ServiceToken<T, H>, implementation: T): Gift {
  const plugin = definePlugin({ provides: token as ServiceToken<T>, setup: () => implementation as never })
  return { name: `test:${token.name}`, use: plugin }
}

/** Gives one item of a slot: `item(Tools, 'weather', tool)`. */
export function item<T>(slot: SlotToken<T>, name: string, value: T): Gift {
  return { name: `test:${slot.name}/${name}`, use: definePlugin({ setup: scope => void scope.add(slot, name, value) }) }
}

/** What a test host is made of besides its plugins. */
export interface TestHostOptions extends Omit<HostOptions, 'plugins' | 'crossing' | 'config'> {
  readonly give?: readonly Gift[]
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
const createDirect = (run: Watch['run']): PluginBoundary => ({
  setup: run,
  service: (_token, implementation) => implementation,
  item: (_token, item) => item,
  tap: (_ref, tap, by) => (value, ctx) => run(by, () => tap(value, ctx)),
})

/** The host, whose close also tells what its plugins left open. */
function watched(host: RunningHost, watch: Watch): RunningHost {
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
