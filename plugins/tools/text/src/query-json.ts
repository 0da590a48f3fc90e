import type { Json, Tool } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { textOf, textTool, type Work } from './text-tool.ts'

/** Makes `query_json`: a JSONata query over JSON. */
export function createQueryJson(work: Work): Tool {
  return textTool<{ json: string; query: string }>({
    description:
      'Queries JSON with a JSONata expression: paths (orders.items.price), filters (items[price > 5]), sums and counts ($sum(items.price)), new shapes ({"n": $count(items)}).',
    parameters: objectOf({
      json: textOf('the JSON, as text'),
      query: {
        type: 'string',
        minLength: 1,
        maxLength: 20_000,
        description: 'a JSONata expression, like orders[total > 100].id',
      },
    }),
    result: objectOf({
      found: { type: 'boolean', description: 'false when nothing matches' },
      result: { description: 'what the query answers; null when nothing matches' },
    }),
    async work(args, ctx) {
      const json = await work.run('query_json', args, ctx)
      const result = json === undefined ? null : (JSON.parse(json) as Json)
      return { data: { found: json !== undefined, result }, text: json ?? '[Nothing matches the query.]' }
    },
  })
}
