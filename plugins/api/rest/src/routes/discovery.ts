import { type CallContext, type JsonSchema, type SlotView, withTimeout } from '@svc/core'
import type { Provider, Route, Tool } from '@svc/core/contracts'
import { toolRecord, BOOLEAN, list, OBJECT, object, ok, STRING } from '@svc/api-types'
import { categoryUnknown } from '../errors.ts'

const LIST_MS = 5_000

const features = object({ tool_calling: BOOLEAN, streaming: BOOLEAN, vision: BOOLEAN })
const providerList = object({ providers: list(object({ name: STRING, models: list(STRING), features })) })
const toolList = object({
  tools: list(object({ name: STRING, description: STRING, category: STRING, parameters: OBJECT })),
  categories: list(STRING),
})

const toolQuery: JsonSchema = {
  type: 'object',
  properties: { category: { type: 'string', description: 'Only the tools of this category.' } },
}

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
      query: toolQuery,
      responses: ok('The tools.', toolList),
      handle: async ({ query }) => ({ body: toolsRecord(tools.entries(), query.category) }),
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

/** Lists the tools of a category, or all tools. `categories` always names all. Throws INVALID_VALUE for an unknown category. */
function toolsRecord(entries: [string, Tool][], category: string | undefined) {
  const byName = entries.toSorted(([a], [b]) => (a < b ? -1 : 1))
  const used = new Set(byName.map(([, { category }]) => category))
  const others = [...used].filter(category => !CATEGORIES.includes(category)).sort()
  // a known category can be without tools, such as `mcp` while no server is connected
  if (category !== undefined && !CATEGORIES.includes(category) && !used.has(category))
    throw categoryUnknown(category, [...CATEGORIES, ...others])
  const shown = category === undefined ? byName : byName.filter(([, tool]) => tool.category === category)
  return {
    tools: shown.map(([name, tool]) => toolRecord(name, tool)),
    categories: [...CATEGORIES.filter(item => used.has(item)), ...others],
  }
}
