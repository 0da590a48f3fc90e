import type { Tool } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { textOf, textTool, type Work } from './text-tool.ts'

interface Arguments {
  readonly text: string
  readonly delimiter?: string
  readonly header?: boolean
  readonly offset?: number
  readonly limit?: number
}

const ROWS = 200
const MOST_ROWS = 2000
const texts = { type: 'array', items: { type: 'string' } }

/** Makes `parse_csv`: rows of CSV, some at a time. */
export function createParseCsv(work: Work): Tool {
  return textTool<Arguments>({
    description:
      'Reads CSV (RFC 4180): quoted fields, line breaks in them, any delimiter. Answers the column names and rows, some at a time.',
    parameters: objectOf(
      {
        text: textOf('the CSV'),
        delimiter: { type: 'string', minLength: 1, maxLength: 1, description: 'what parts the fields; found out without it' },
        header: { type: 'boolean', description: 'whether the first row names the columns; default true' },
        offset: { type: 'integer', minimum: 0, description: 'how many rows to pass over; default 0' },
        limit: { type: 'integer', minimum: 1, maximum: MOST_ROWS, description: `how many rows to answer; default ${ROWS}` },
      },
      ['delimiter', 'header', 'offset', 'limit']
    ),
    result: objectOf(
      {
        columns: { ...texts, description: 'the names of the columns, where the first row has them' },
        rows: { type: 'array', items: texts },
        row_count: { type: 'integer', description: 'all rows there are' },
        offset: { type: 'integer' },
        delimiter: { type: 'string' },
        next_offset: { type: 'integer', description: 'where to read on, when there are more rows' },
      },
      ['columns', 'next_offset']
    ),
    async work({ header = true, offset = 0, limit = ROWS, ...args }, ctx) {
      const data = await work.run('parse_csv', { ...args, header, offset, limit }, ctx)
      return { data, text: JSON.stringify(data) }
    },
  })
}
