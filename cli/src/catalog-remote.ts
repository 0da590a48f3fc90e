import type { Effective } from '@svc/core/contracts'
import type { ToolRecord } from '@svc/wire'
import type { Catalog, Health, ProviderRecord } from './catalog.ts'
import { helloThrough } from './hello.ts'
import type { ServerApi } from './server-api.ts'

/** What a server has, as it tells over its HTTP API. */
export function remoteCatalog(api: ServerApi): Catalog {
  return {
    of: `the server at ${api.url}`,
    shared: true,
    tools: async signal => (await api.ask<{ tools: ToolRecord[] }>('GET', '/api/v1/tools', signal)).tools,
    providers: async signal => (await api.ask<{ providers: ProviderRecord[] }>('GET', '/api/v1/providers', signal)).providers,
    health: async signal => {
      const { providers } = await api.ask<{ providers: Record<string, Health> }>('GET', '/api/v1/status', signal)
      const told = ({ healthy, error }: Health) => ({ healthy, ...(error === undefined ? {} : { error }) })
      return Object.fromEntries(Object.entries(providers).map(([name, one]) => [name, told(one)]))
    },
    hello: (provider, model, signal) => helloThrough(api, provider, model, signal),
    effective: signal => api.ask<Effective>('GET', '/api/v1/config/effective', signal),
    switch: async (what, name, signal) =>
      (await api.ask<{ effective: Effective }>('POST', `/api/v1/${what}/switch`, signal, { [what]: name })).effective,
  }
}
