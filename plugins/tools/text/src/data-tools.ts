import type { Tool, Json } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { textTool, type Work, textOf } from './text-tool.ts'

/** Creates `calculate`, which evaluates arithmetic. */
export function createCalculate(work: Work): Tool {
  return textTool<{ expression: string }>({
    description:
      'Evaluates arithmetic: + - * / % (remainder) ^ ! ( ), comparisons, PI, E, and abs ceil floor round roundTo(x, digits) trunc sign sqrt cbrt exp ln log10 log2 min max hypot gcd lcm sin cos tan asin acos atan atan2 sinh cosh tanh (radians). About 15 digits.',
    parameters: objectOf({
      expression: { type: 'string', minLength: 1, maxLength: 2000, description: 'such as (1 + 2) * 3 ^ 2 or sqrt(2) / 2' },
    }),
    result: objectOf(
      {
        result: { type: ['number', 'boolean'] },
        note: { type: 'string', description: 'note on an inexact result' },
      },
      ['note']
    ),
    async work(args, ctx) {
      const data = await work.run('calculate', args, ctx)
      return { data, text: data.note === undefined ? String(data.result) : `${data.result}\n[${data.note}]` }
    },
  })
}

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

interface CsvArguments {
  readonly text: string
  readonly delimiter?: string
  readonly header?: boolean
  readonly offset?: number
  readonly limit?: number
}

const ROWS = 200
const MOST_ROWS = 2000
const texts = { type: 'array', items: { type: 'string' } }

/** Creates `parse_csv`, which reads rows of CSV in pages. */
export function createParseCsv(work: Work): Tool {
  return textTool<CsvArguments>({
    description:
      'Reads CSV (RFC 4180) with quoted fields, line breaks in fields, and any delimiter. Returns column names and a page of rows.',
    parameters: objectOf(
      {
        text: textOf('CSV'),
        delimiter: { type: 'string', minLength: 1, maxLength: 1, description: 'field separator; default: detected' },
        header: { type: 'boolean', description: 'whether the first row contains column names; default true' },
        offset: { type: 'integer', minimum: 0, description: 'number of rows to skip; default 0' },
        limit: { type: 'integer', minimum: 1, maximum: MOST_ROWS, description: `maximum number of rows; default ${ROWS}` },
      },
      ['delimiter', 'header', 'offset', 'limit']
    ),
    result: objectOf(
      {
        columns: { ...texts, description: 'column names, if the first row contains them' },
        rows: { type: 'array', items: texts },
        row_count: { type: 'integer', description: 'total number of rows' },
        offset: { type: 'integer' },
        delimiter: { type: 'string' },
        next_offset: { type: 'integer', description: 'offset of the next rows, if there are more' },
      },
      ['columns', 'next_offset']
    ),
    async work({ header = true, offset = 0, limit = ROWS, ...args }, ctx) {
      const data = await work.run('parse_csv', { ...args, header, offset, limit }, ctx)
      return { data, text: JSON.stringify(data) }
    },
  })
}
