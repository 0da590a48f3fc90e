import { messageOf, systemContext, withTimeout } from '@svc/core'
import { type CommandContext, type Provider, Providers, Selection, type Tool, Tools } from '@svc/core/contracts'
import { toolRecord } from '@svc/api-types'
import { providerUnknown } from '../errors.ts'
import type { Catalog, Health, ListedTool, ProviderRecord } from './catalog.ts'
import { helloTo } from './hello.ts'

const LIST_MS = 5_000

/** The host of a command. */
type Host = Awaited<ReturnType<CommandContext['host']>>

/** What a host of this process has. */
export function localCatalog(host: Host): Catalog {
  const providers = host.slot(Providers)
  const ctx = (signal: AbortSignal) => systemContext(signal, 'svc')
  return {
    of: 'a host of its own',
    shared: false,
    tools: async () => host.slot(Tools).entries().sort(byName).map(listed),
    providers: signal => Promise.all(providers.entries().map(([name, one]) => providerRecord(name, one, signal))),
    async health(signal, limitMs, names = providers.names()) {
      const all = names.map(async name => [name, await probed(providers.get(name), limitMs, signal)] as const)
      return Object.fromEntries(await Promise.all(all))
    },
    async hello(name, model, signal) {
      const provider = providers.get(name)
      if (!provider) throw providerUnknown(name, providers.names())
      return await helloTo(provider, model, signal)
    },
    effective: signal => host.service(Selection).effective(ctx(signal)),
    switch(what, name, signal) {
      const selection = host.service(Selection)
      return what === 'mode' ? selection.switchMode(name, ctx(signal)) : selection.switchProfile(name, ctx(signal))
    },
  }
}

const byName = ([a]: [string, Tool], [b]: [string, Tool]) => (a < b ? -1 : 1)

const listed = ([name, tool]: [string, Tool]): ListedTool => ({
  ...toolRecord(name, tool),
  effects: tool.effects,
  asks: tool.asks === true,
  schema: tool.parameters,
  ...(tool.result === undefined ? {} : { result: tool.result }),
  ...(tool.timeoutMs === undefined ? {} : { timeoutMs: tool.timeoutMs }),
})

/** One that cannot say its models now has none to show; the others do. */
async function providerRecord(name: string, provider: Provider, signal: AbortSignal): Promise<ProviderRecord> {
  const { tool_calling, streaming, vision } = provider.features
  const list = withTimeout(LIST_MS, ending => provider.models(systemContext(ending, 'svc')), { signal })
  const { models } = await list.catch(() => ({ models: [] }))
  return { name, models: models.map(({ id }) => id), features: { tool_calling, streaming, vision } }
}

async function probed(provider: Provider | undefined, limitMs: number, signal: AbortSignal): Promise<Health> {
  const began = performance.now()
  const late = () => new Error(`no answer within ${limitMs} ms`)
  try {
    await withTimeout(limitMs, ending => provider?.probe(systemContext(ending, 'svc')), { signal, late })
    return { healthy: true, ms: performance.now() - began }
  } catch (error) {
    signal.throwIfAborted()
    return { healthy: false, error: messageOf(error), ms: performance.now() - began }
  }
}
