const flag = (description: string) => ({ type: 'boolean', description: `${description}; default false` }) as const
const lines = { type: 'array', items: { type: 'string' } } as const

/** JSON Schema of the arguments of `search_text`. */
export const PARAMETERS = {
  type: 'object',
  properties: {
    query: { type: 'string', minLength: 1, maxLength: 1000, description: 'what to find in a line, as it is written' },
    regex: flag('whether query is a regular expression (RE2: no lookaround, no back-references)'),
    ignore_case: flag('whether upper and lower case are the same'),
    path: { type: 'string', minLength: 1, maxLength: 4096, description: 'the directory or file to search; default "."' },
    glob: {
      type: 'string',
      minLength: 1,
      maxLength: 1024,
      description: 'a pattern for the files, seen from path: *.ts, src/**/*.{js,ts}; default all',
    },
    context: { type: 'integer', minimum: 0, maximum: 10, description: 'lines to show before and after each; default 0' },
    ignored: flag('whether to search what ignore files leave out, too'),
  },
  required: ['query'],
  additionalProperties: false,
} as const

/** JSON Schema of its answer. */
export const RESULT = {
  type: 'object',
  properties: {
    path: { type: 'string' },
    matches: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          path: { type: 'string' },
          line: { type: 'integer' },
          column: { type: 'integer', description: 'where it begins to fit, from 1' },
          text: { type: 'string' },
          before: lines,
          after: lines,
        },
        required: ['path', 'line', 'column', 'text'],
        additionalProperties: false,
      },
    },
    files_searched: { type: 'integer' },
    truncated: { type: 'boolean' },
    note: { type: 'string' },
  },
  required: ['path', 'matches', 'files_searched', 'truncated'],
  additionalProperties: false,
} as const
