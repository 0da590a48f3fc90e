import type { Json, Tool } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { textOf, textTool, type Work } from './text-tool.ts'

/** Creates `query_json`, which runs a JSONata query on JSON. */
export function createQueryJson(work: Work): Tool {
  return textTool<{ json: string; query: string }>({
    description:
      'Queries JSON with a JSONata expression: paths (orders.items.price), filters (items[price > 5]), sums and counts ($sum(items.price)), new shapes ({"n": $count(items)}).',
    parameters: objectOf({
      json: textOf('JSON as text'),
      query: {
        type: 'string',
        minLength: 1,
        maxLength: 20_000,
        description: 'JSONata expression, such as orders[total > 100].id',
      },
    }),
    result: objectOf({
      found: { type: 'boolean', description: 'false if nothing matches' },
      result: { description: 'result of the query; null if nothing matches' },
    }),
    async work(args, ctx) {
      const json = await work.run('query_json', args, ctx)
      const result = json === undefined ? null : (JSON.parse(json) as Json)
      return { data: { found: json !== undefined, result }, text: json ?? '[Nothing matches the query.]' }
    },
  })
}
