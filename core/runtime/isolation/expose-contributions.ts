import { type Scope, type SlotChange, type SlotToken, type SlotView, systemContext } from '@svc/core'
import type { RefusalKind } from '@svc/core/contracts'
import { type Channel, dataOf, methodsOf } from '../processes/channel.ts'
import { hooksToken, HostBridge, PluginRunner } from './contract.ts'
import { createContributions } from './contributions.ts'
import type { Isolated } from './isolated-ref.ts'
import { createBorrowedContexts, type BorrowedContexts } from './borrowed-contexts.ts'
import { createHostBridge } from './host-bridge.ts'
import type { OutputLimiter } from './output-limiter.ts'

export type Method = (...args: unknown[]) => unknown

/** One process of it. */
export interface PluginConnection {
  readonly channel: Channel
  readonly budget: OutputLimiter
  /** Unix milliseconds until which its setup must have ended. */
  readonly deadline?: number
  readonly refused: (kind: RefusalKind, what: string) => Promise<void>
}

/** Gives the plugin over there what it asked for and lets it set up; answers with the stub of its service. */
export async function exposeContributions(
  plugin: Isolated,
  scope: Scope,
  given: Record<string, unknown>,
  { channel, budget, refused, deadline }: PluginConnection
): Promise<Record<string, Method>> {
  const { provides } = plugin
  const uses = createBorrowedContexts(plugin.ref.name)
  const contributions = createContributions(plugin.ref.name)
  channel.signal.addEventListener('abort', () => contributions.removeAll(), { once: true })
  channel.offer('host_bridge', HostBridge, createHostBridge(plugin, scope, { channel, uses, contributions, budget, refused }))
  channel.offer<unknown>('hooks', hooksToken(provides), uses.guard(hooksToken(provides), scope.hooks))
  const services = offerServices(plugin, given, { channel, uses })
  for (const [key, token] of Object.entries(plugin.requires)) {
    if (token.what === 'slot') await mirror(key, token, given[key] as SlotView<unknown>, scope, { channel, uses })
  }
  const { config, instance } = scope
  const setup = { config, ...(instance === undefined ? {} : { instance }), services }
  const only = await channel
    .reach('plugin_runner', PluginRunner)
    .setup(setup, { ...systemContext(channel.signal), ...(deadline ? { deadline } : {}) })
  return provides ? uses.lend(provides, channel.reach<unknown>('service', provides, { only }) as object) : {}
}

/** The line to the far side, and who may be asked for over it. */
interface ExposedChannel {
  readonly channel: Channel
  readonly uses: BorrowedContexts
}

function offerServices(
  { requires, optional }: Isolated,
  given: Record<string, unknown>,
  { channel, uses }: ExposedChannel
): string[] {
  const services = Object.entries({ ...requires, ...optional }).filter(
    ([key, { what }]) => what === 'service' && given[key] !== undefined
  )
  for (const [key, token] of services) channel.offer<unknown>(`given.${key}`, token, uses.guard(token, given[key] as object))
  return services.map(([key]) => key)
}

/** Shows a slot to the isolated side, now and after each change. */
async function mirror(key: string, token: SlotToken, view: SlotView<unknown>, scope: Scope, { channel, uses }: ExposedChannel) {
  const runner = channel.reach('plugin_runner', PluginRunner)
  const offers = new Map<string, () => void>()
  const show = (name: string) => {
    const item = view.get(name)
    if (item === undefined) return []
    const path = `view.${key}.${name}`
    offers.set(name, channel.offer<unknown>(path, token, uses.guard(token, item as object)))
    return [{ name, path, owner: view.owner(name) ?? '', methods: methodsOf(token, item), data: dataOf(token, item) }]
  }
  const sendChange = async ({ added, removed }: Pick<SlotChange, 'added' | 'removed'>) => {
    for (const name of removed) offers.get(name)?.()
    await runner.change(key, { version: view.version, added: added.flatMap(show), removed }, systemContext(channel.signal))
  }
  channel.signal.addEventListener('abort', scope.tap(token.changed, sendChange), { once: true })
  await sendChange({ added: view.names(), removed: [] })
}
