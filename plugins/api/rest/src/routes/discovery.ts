import { type SlotView, type CallContext, withTimeout } from '@svc/core'
import type { Provider, Route, Tool } from '@svc/core/contracts'
import { toolRecord } from '@svc/api-types'
import { BOOLEAN, list, OBJECT, object, ok, STRING } from '../schemas.ts'

const LIST_MS = 5_000

const features = object({ tool_calling: BOOLEAN, streaming: BOOLEAN, vision: BOOLEAN })
const providerList = object({ providers: list(object({ name: STRING, models: list(STRING), features })) })
const toolList = object({
  tools: list(object({ name: STRING, description: STRING, category: STRING, parameters: OBJECT })),
  categories: list(STRING),
})

/** Routes that list providers and tools. */
export function createDiscoveryRoutes({
  providers,
  tools,
}: {
  providers: SlotView<Provider>
  tools: SlotView<Tool>
}): Record<string, Route> {
  return {
    providers: {
      method: 'GET',
      path: '/api/v1/providers',
      summary: 'List providers with their models and features',
      scope: 'read',
      responses: ok('The providers.', providerList),
      handle: async (_request, ctx) => ({
        body: {
          providers: await Promise.all(providers.entries().map(([name, provider]) => providerRecord(name, provider, ctx))),
        },
      }),
    },
    tools: {
      method: 'GET',
      path: '/api/v1/tools',
      summary: 'List tools',
      scope: 'read',
      responses: ok('The tools.', toolList),
      handle: async () => ({ body: toolsRecord(tools.entries()) }),
    },
  }
}

/** Describes a provider. If it fails to list its models, the list is empty. */
async function providerRecord(name: string, provider: Provider, ctx: CallContext) {
  const { tool_calling, streaming, vision } = provider.features
  const listed = await withTimeout(LIST_MS, signal => provider.models({ ...ctx, signal }), ctx).catch(() => ({ models: [] }))
  return { name, models: listed.models.map(({ id }) => id), features: { tool_calling, streaming, vision } }
}

const CATEGORIES = ['files', 'search', 'web', 'code', 'shell', 'git', 'text', 'time', 'mcp']

function toolsRecord(entries: [string, Tool][]) {
  const byName = entries.toSorted(([a], [b]) => (a < b ? -1 : 1))
  const used = new Set(byName.map(([, { category }]) => category))
  const others = [...used].filter(category => !CATEGORIES.includes(category)).sort()
  return {
    tools: byName.map(([name, tool]) => toolRecord(name, tool)),
    categories: [...CATEGORIES.filter(category => used.has(category)), ...others],
  }
}
