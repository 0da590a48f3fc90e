import type { Effective, ServerClient } from '@svc/core/contracts'
import type { ToolRecord } from '@svc/api-types'
import type { Catalog, Health, ProviderRecord } from './catalog.ts'
import { helloThrough } from './hello.ts'

/** What a server has, as it tells over its HTTP API. */
export function remoteCatalog(server: ServerClient): Catalog {
  return {
    of: `the server at ${server.url}`,
    shared: true,
    tools: async signal => (await server.request<{ tools: ToolRecord[] }>('GET', '/api/v1/tools', { signal })).tools,
    providers: async signal =>
      (await server.request<{ providers: ProviderRecord[] }>('GET', '/api/v1/providers', { signal })).providers,
    health: async signal => {
      const { providers } = await server.request<{ providers: Record<string, Health> }>('GET', '/api/v1/status', { signal })
      const told = ({ healthy, error }: Health) => ({ healthy, ...(error === undefined ? {} : { error }) })
      return Object.fromEntries(Object.entries(providers).map(([name, one]) => [name, told(one)]))
    },
    hello: (provider, model, signal) => helloThrough(server, provider, model, signal),
    effective: signal => server.request<Effective>('GET', '/api/v1/config/effective', { signal }),
    switch: async (what, name, signal) =>
      (await server.request<{ effective: Effective }>('POST', `/api/v1/${what}/switch`, { signal, body: { [what]: name } }))
        .effective,
  }
}
