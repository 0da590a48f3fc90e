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

/** Creates `parse_csv`, which reads rows of CSV in pages. */
export function createParseCsv(work: Work): Tool {
  return textTool<Arguments>({
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
