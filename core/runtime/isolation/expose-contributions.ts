import { type Scope, type SlotChange, type SlotToken, type SlotView, systemContext } from '@svc/core'
import type { RefusalKind } from '@svc/core/contracts'
import { type Channel, dataOf, methodsOf } from '../processes/channel.ts'
import { hooksToken, HostBridge, Shell } from './contract.ts'
import { createContributions } from './contributions.ts'
import type { Isolated } from './isolated-ref.ts'
import { createBorrowedContexts, type BorrowedContexts } from './borrowed-contexts.ts'
import { hostBridgeOf } from './host-bridge.ts'
import type { LineBudget } from './line-budget.ts'

export type Method = (...args: unknown[]) => unknown

/** One process of it. */
export interface Far {
  readonly channel: Channel
  readonly budget: LineBudget
  /** Unix milliseconds until which its setup must have ended. */
  readonly deadline?: number
  readonly refused: (kind: RefusalKind, what: string) => Promise<void>
}

/** Gives the plugin over there what it asked for and lets it set up; answers with the stub of its service. */
export async function exposeContributions(
  plugin: Isolated,
  scope: Scope,
  given: Record<string, unknown>,
  { channel, budget, refused, deadline }: Far
): Promise<Record<string, Method>> {
  const { provides } = plugin
  const uses = createBorrowedContexts(plugin.ref.name)
  const contributions = createContributions(plugin.ref.name)
  channel.signal.addEventListener('abort', () => contributions.removeAll(), { once: true })
  channel.offer('outside', HostBridge, hostBridgeOf(plugin, scope, { channel, uses, contributions, budget, refused }))
  channel.offer<unknown>('hooks', hooksToken(provides), uses.guard(hooksToken(provides), scope.hooks))
  const services = offerServices(plugin, given, { channel, uses })
  for (const [key, token] of Object.entries(plugin.requires)) {
    if (token.what === 'slot') await mirror(key, token, given[key] as SlotView<unknown>, scope, { channel, uses })
  }
  const { config, instance } = scope
  const setup = { config, ...(instance === undefined ? {} : { instance }), services }
  const only = await channel
    .reach('shell', Shell)
    .setup(setup, { ...systemContext(channel.signal), ...(deadline ? { deadline } : {}) })
  return provides ? uses.lend(provides, channel.reach<unknown>('service', provides, { only }) as object) : {}
}

/** The line to the far side, and who may be asked for over it. */
interface Border {
  readonly channel: Channel
  readonly uses: BorrowedContexts
}

function offerServices({ requires, optional }: Isolated, given: Record<string, unknown>, { channel, uses }: Border): string[] {
  const services = Object.entries({ ...requires, ...optional }).filter(
    ([key, { what }]) => what === 'service' && given[key] !== undefined
  )
  for (const [key, token] of services) channel.offer<unknown>(`given.${key}`, token, uses.guard(token, given[key] as object))
  return services.map(([key]) => key)
}

/** Shows a slot to the isolated side, now and after each change. */
async function mirror(key: string, token: SlotToken, view: SlotView<unknown>, scope: Scope, { channel, uses }: Border) {
  const shell = channel.reach('shell', Shell)
  const offers = new Map<string, () => void>()
  const show = (name: string) => {
    const item = view.get(name)
    if (item === undefined) return []
    const path = `view.${key}.${name}`
    offers.set(name, channel.offer<unknown>(path, token, uses.guard(token, item as object)))
    return [{ name, path, owner: view.owner(name) ?? '', methods: methodsOf(token, item), data: dataOf(token, item) }]
  }
  const tell = async ({ added, removed }: Pick<SlotChange, 'added' | 'removed'>) => {
    for (const name of removed) offers.get(name)?.()
    await shell.change(key, { version: view.version, added: added.flatMap(show), removed }, systemContext(channel.signal))
  }
  channel.signal.addEventListener('abort', scope.tap(token.changed, tell), { once: true })
  await tell({ added: view.names(), removed: [] })
}
